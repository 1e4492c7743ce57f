"""Run the set's programs of agents with a model that invents answers: each works, or fails, as it is meant to.

Usage: runs.py

Prints one line for each program and exits with 1 if one did otherwise than ``runs.toml`` says. Nothing reaches a
network: the model is ``FakeModel``, and the repository to be judged is one of the set, built into a temporary folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
MOOT = HERE / "heldout" / "moot_court"

FAKE = '''
import sys, types
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

SHAPES = {"integer": 3, "number": 3.0, "string": "some text of a model", "boolean": True, "array": [], "null": None}
def value(spec, defs):
    if "$ref" in spec: return value(defs[spec["$ref"].split("/")[-1]], defs)
    if "enum" in spec: return spec["enum"][0]
    if "const" in spec: return spec["const"]
    if "anyOf" in spec: return value(spec["anyOf"][0], defs)
    if spec.get("type") == "object":
        if "properties" not in spec: return {"a": 3, "b": 4}
        return {k: value(v, defs) for k, v in spec["properties"].items()}
    if spec.get("type") == "array": return [value(spec["items"], defs) for _ in range(max(spec.get("minItems", 0), 2))]
    return SHAPES[spec["type"]]
def made(schema):
    spec = schema.model_json_schema()
    answer = value(spec, spec.get("$defs", {}))
    if "city" in answer: answer["city"] = "Ljubljana"
    if "budget" in answer: answer["budget"] = 900
    return answer
class FakeModel:
    def __init__(self, **_): self.tools = []
    def invoke(self, *_a, **_k):
        calls = [{"name": t.__name__, "args": made(t), "id": "1"} for t in self.tools]
        return AIMessage("Label: praise [1] {\\"score\\": 2, \\"argument\\": \\"x\\"}", tool_calls=calls)
    async def ainvoke(self, *a, **k): return self.invoke()
    def bind_tools(self, tools, **_):
        bound = FakeModel(); bound.tools = [t for t in tools if isinstance(t, type)]; return bound
    def with_structured_output(self, schema, **_): return RunnableLambda(lambda _m: schema.model_validate(made(schema)))
class Fakes(GenericFakeChatModel):
    def bind_tools(self, tools, **_): return self
module = types.ModuleType("langchain_openai"); module.ChatOpenAI = FakeModel
sys.modules["langchain_openai"] = module
TREE, REPO, PDF = sys.argv[1:4]
sys.path.insert(0, TREE); sys.path.insert(0, TREE + "/src")
import warnings; warnings.simplefilter("ignore")
'''

def outcome(tree: Path, code: str, repository: Path, pdf: Path) -> str:
    """The last line that a program prints, or of its error."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-B", "-c", FAKE + code, str(tree), str(repository), str(pdf)],
            cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        )
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[-1] if lines else ""


def twin_code(tree: Path) -> str:
    """How a twin is started."""
    if (tree / "note.py").exists():
        return ("open('c.txt', 'w').write('x'); sys.argv = ['x', 'c.txt']; import runpy, os\n"
                "runpy.run_path(TREE + '/note.py', run_name='__main__'); print(os.path.exists('NOTE.md'))")
    start = "run_path(TREE + '/main.py', run_name='__main__')" if (tree / "main.py").exists() else (
        f"run_module('{next(tree.glob('*/__main__.py')).parent.name}', run_name='__main__')")
    return f"import runpy, os; sys.argv = ['x', REPO]; runpy.{start}; print(sorted(os.listdir('.')))"


STUBS = {
    "only_a_print": "[]", "missing_reducer": "INVALID_CONCURRENT_GRAPH_UPDATE", "cut_off": "KeyError",
    "no_way_out": "GRAPH_RECURSION_LIMIT", "dropped_result": "False",
}


def main() -> int:
    """All programs; 1 if one did otherwise."""
    wrong = 0
    with tempfile.TemporaryDirectory() as built:
        subprocess.run([sys.executable, HERE / "build.py", MOOT, MOOT / "tree", built], check=True)
        repository, pdf = Path(built, "repo"), Path(built, "report.pdf")
        programs = tomllib.loads((HERE / "runs.toml").read_text("utf-8"))["program"]
        trees = {HERE / each["name"] / "tree": (each["code"], each["last_line"]) for each in programs}
        for twin in sorted(path for path in (HERE / "twins").iterdir() if path.is_dir()):
            ends = "True" if (twin / "sound" / "note.py").exists() else "['verdict."
            trees[twin / "sound"] = (twin_code(twin / "sound"), ends)
            trees[twin / "stub"] = (twin_code(twin / "stub"), STUBS.get(twin.name, ends))
        for tree, (code, wanted) in trees.items():
            said = outcome(tree, code, repository, pdf)
            good = wanted in said
            wrong += not good
            print("as meant " if good else "OTHERWISE", tree.relative_to(HERE), "|", said[:150])
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
