"""All detectors over a few files: counted, kept, bounded, and storable whatever stands in the code."""

from __future__ import annotations

import pickle
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import CodeFacts, CodeReader, kept, storable, survey_code
from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, FINDINGS_MAX, Finding, History

NO_HISTORY = History(total=0, shown=[], span_s=0, burst=0)
SHELL = "import os\n\n\ndef run(command):\n    os.system(command)\n"


def surveyed(files: dict[str, str]) -> CodeFacts:
    sources = [parsed(path, files[path].encode("utf-8", "surrogatepass")) for path in sorted(files)]
    return survey_code(sources, sorted(files), lambda path: files[path].encode(), NO_HISTORY)


def test_findings_of_all_detectors_are_there_and_known_as_goals() -> None:
    found = surveyed({
        "README.md": "Run it: `python main.py`\n", "agent.py": SHELL,
        "state.py": "from pydantic import BaseModel\n\n\nclass Evidence(BaseModel):\n    found: bool\n",
        "tests/test_a.py": "def test_one():\n    assert one() == 1\n",
    })
    assert {"security.os_system", "state.models", "project.tests", "project.readme"} <= set(found.counts)
    assert set(found.counts) <= set(GOALS)
    assert found.examined["python_files"] == found.examined["parsed"] + found.examined["unparsed"] == 4


@given(st.lists(st.integers(1, 5), max_size=12))
def test_readers_that_share_the_files_find_what_one_finds(shares: list[int]) -> None:
    project = Path("examples/audited/project")
    texts = {str(path.relative_to(project)): path.read_bytes() for path in project.rglob("*.py")}
    texts |= {"bad.py": b"print 'x'", "zz/again.py": texts["depcheck/verdict.py"]}
    paths = sorted(texts)
    whole, rest = CodeReader(paths), list(paths)
    for share in [*shares, len(paths)]:
        part = CodeReader(paths)
        for path in rest[:share]:
            part.take(parsed(path, texts[path]))
        rest = rest[share:]
        whole.join(pickle.loads(pickle.dumps(part)))  # as a fork hands it over
    alone = survey_code([parsed(path, texts[path]) for path in paths], paths, texts.get, NO_HISTORY)
    assert whole.facts(paths, texts.get, NO_HISTORY) == alone


def test_all_findings_are_counted_and_the_first_of_what_ships_are_kept() -> None:
    calls = "import os\n" + "def f(x):\n" + "    os.system(x)\n" * 60
    found = surveyed({"a_examples/b.py": "", "examples/a.py": calls, "z.py": calls})
    kept = [finding for finding in found.findings if finding.goal == "security.os_system"]
    assert found.counts["security.os_system"] >= 60
    assert len(kept) == FINDINGS_MAX
    assert {finding.path for finding in kept} == {"z.py"}
    assert [finding.line for finding in kept] == sorted(finding.line for finding in kept)


def test_findings_in_what_ships_go_before_others_whatever_their_paths() -> None:
    found = [Finding(goal="g", path=path, line=1, text="") for path in ("a/tests/x.py", "b/examples/x.py", "c/x.py")]
    many = [Finding(goal="g", path="d.py", line=line, text="") for line in range(FINDINGS_MAX - 2)]
    assert [one.path for one in kept([*found, *many])] == ["c/x.py", *["d.py"] * len(many), "b/examples/x.py"]


def test_a_file_that_python_refuses_is_counted_once_and_told() -> None:
    found = surveyed({"a.py": "print 'x'\n", "b.py": "x = 1\n"})
    assert [(one.path, one.reason) for one in found.unparsed] == [("a.py", "Python 2")]
    assert (found.examined["parsed"], found.examined["unparsed"]) == (1, 1)


def test_nothing_is_surveyed() -> None:
    found = surveyed({})
    assert found.graphs == []
    assert found.examined["python_files"] == 0
    assert not set(found.counts) & {goal for goal, one in GOALS.items() if one.kind == "flaw"}


def test_half_a_surrogate_pair_can_be_stored() -> None:
    code = "import os\nfrom langgraph.graph import StateGraph\ng = StateGraph(dict)\n"
    code += "g.add_node('\\ud800', f)\nos.system('\\udfff' + x)\n"
    found = surveyed({"a.py": code})
    assert msgspec.json.decode(msgspec.json.encode(found), type=CodeFacts) == found


_TEXTS = st.text(st.sampled_from("a\n\u00e4\U0001d11e\ud800\udfff"))
"""Halves of surrogate pairs among them."""


@given(
    st.recursive(_TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner), max_leaves=8)
)
def test_what_is_storable_can_be_encoded(value: object) -> None:
    assert msgspec.json.encode(storable(value))
    assert storable(storable(value)) == storable(value)


def test_no_text_is_longer_than_the_contract_says() -> None:
    assert len(storable("\ud800" * CONTENT_CHARS_MAX)) == CONTENT_CHARS_MAX


_LINES = (
    "import os, subprocess, pickle, yaml, json", "from langgraph.graph import StateGraph, START, END",
    "g = StateGraph(dict)", "g.add_node('a', f)", "g.add_edge(START, 'a')", "g.add_edge(['a', 'b'], x)",
    "g.add_conditional_edges('a', route, {'x': 'a', y: END})", "subprocess.run(f'git clone {url}', shell=True)",
    "def f(state):", "    return {'x': llm.invoke(prompt).content}", "class S(TypedDict):",
    "    x: Annotated[list, add]", "PROSECUTOR = 'You are the prosecutor. Be strict.'", "eval(input())",
    "pickle.loads(data)", "try:", "    pass", "except Exception:", "    pass", "for n in range(3):",
    "    g.add_node(f'n{n}', f)", "score = min(score, 3)", "API_KEY = 'sk-1234567890abcdef1234567890abcdef'",
    "model.with_structured_output(S)", "if spread > 2:", "    dissent()", "lambda *a, **k: (yield)",
    "x: 'Annotated[int, f]' = 1", "match x:", "    case {'a': [*_], **r}: pass", "async def h():",
    "    await g.ainvoke({})", "return Command(goto='a')", "[Send('a', s) for s in xs]", "del g", "global g",
    "*a, b = c",
)


@given(st.lists(st.sampled_from(_LINES), min_size=1, max_size=25))
def test_any_lines_of_code_in_any_order_are_surveyed(lines: list[str]) -> None:
    """Lines that detectors care for, mixed: none of them raises, and what they say is well formed."""
    text = "\n".join(_repaired(lines)) + "\n"
    source = parsed("a.py", text.encode())
    assert source.tree is not None, text
    found = survey_code([source], ["a.py"], lambda _: None, NO_HISTORY)
    height = text.count("\n")
    assert set(found.counts) <= set(GOALS)
    assert all(finding.line <= height and finding.path in ("a.py", ".") for finding in found.findings)


def _repaired(lines: list[str]) -> list[str]:
    """The lines with what they need around them to parse."""
    found: list[str] = []
    for line in lines:
        if line.startswith(("try", "except")):
            found += ["try:", "    pass", "except Exception as error:", "    print(error)"]
        elif line.endswith(":"):
            body = "    case 1: pass" if line.startswith("match") else "    y = f(x)"
            found += [line, body]
        elif line.startswith("    case"):
            found += ["match x:", line]
        elif line.startswith((" ", "return")):
            found += ["async def inner(x):", f"    {line.strip()}"]
        elif line.startswith("global"):
            found += ["def outer():", f"    {line}"]
        else:
            found.append(line)
    return found
