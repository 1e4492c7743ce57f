"""The three sleuths. They use no model: an exhibit is something that was read, with its place."""

import ast
from pathlib import Path

import pymupdf

from .clone import GitFailed, git
from .state import Case, Exhibit

SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
REDUCERS = ("operator.add", "operator.or_", "operator.ior", "add_messages", "add")
IDEAS = ("fan-out", "fan-in", "dialectic", "reducer", "metacognition")


def history(case: Case) -> dict:
    try:
        lines = git("log", "--reverse", "--format=%h %aI %s", cwd=Path(case["folder"])).splitlines()
        days = sorted({line.split()[1][:10] for line in lines})
        sizes = git("log", "--format=@", "--shortstat", cwd=Path(case["folder"])).split("@")
    except GitFailed as failed:
        return {"exhibits": [Exhibit(number="H1", criterion="history", says=str(failed), place=".git")]}
    most = max((int(one.split(" insertion")[0].split()[-1]) for one in sizes if " insertion" in one), default=0)
    found = [
        f"{len(lines)} commits on {len(days)} days, from {days[0]} to {days[-1]}",
        f"the largest commit adds {most} lines",
        "messages: " + " | ".join(line.split(" ", 2)[2] for line in lines[:40]),
    ]
    return {"exhibits": [Exhibit(number=f"H{n}", criterion="history", says=says, place="git log")
                         for n, says in enumerate(found, 1)]}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def in_module(tree: ast.Module, name: str) -> list[tuple[str, str, bool]]:
    """Criterion, sentence with line, and whether it is a flaw."""
    found: list[tuple[str, str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = {dotted(base).split(".")[-1] for base in node.bases}
            if bases & {"TypedDict", "BaseModel"}:
                merged = [ast.unparse(item.target) for item in node.body if isinstance(item, ast.AnnAssign)
                          and any(one in ast.unparse(item.annotation) for one in REDUCERS)]
                found.append(("typing", f"{name}:{node.lineno} {node.name} is typed; merged: {merged or 'none'}", False))
        elif isinstance(node, ast.Call):
            called = dotted(node.func)
            shell = any(k.arg == "shell" and getattr(k.value, "value", False) is True for k in node.keywords)
            if called in SHELLS or shell or called in ("eval", "exec"):
                found.append(("safety", f"{name}:{node.lineno} calls {ast.unparse(node)[:90]}", True))
            elif called.startswith("subprocess."):
                limit = any(k.arg == "timeout" for k in node.keywords)
                found.append(("safety", f"{name}:{node.lineno} {called} {'with' if limit else 'without'} a limit", False))
    return found


def code(case: Case) -> dict:
    root, found = Path(case["folder"]), []
    for path in sorted(root.rglob("*.py"))[:400]:
        name = str(path.relative_to(root))
        try:
            found += in_module(ast.parse(path.read_text("utf-8", "replace")), name)
        except (SyntaxError, ValueError) as error:
            found.append(("typing", f"{name} cannot be parsed: {error}", False))
    return {"exhibits": [Exhibit(number=f"C{n}", criterion=criterion, says=says, place=says.split()[0], flaw=flaw)
                         for n, (criterion, says, flaw) in enumerate(found, 1)]}


def paper(case: Case) -> dict:
    root, found = Path(case["folder"]), []
    try:
        with pymupdf.open(case["pdf"]) as pdf:
            text = [page.get_text() for page in pdf]
    except Exception as error:  # pymupdf raises several kinds for damaged files
        return {"exhibits": [Exhibit(number="P1", criterion="paper", says=f"unreadable: {error}", place=case["pdf"])]}
    for number, page in enumerate(text, 1):
        for word in sorted(set(page.split())):
            name = word.strip("`'\"().,;:")
            if name.endswith(".py") and "/" in name:
                there = "exists" if (root / name).is_file() else "does NOT exist"
                found.append((f"the report names {name}, which {there}", f"page {number}"))
        for idea in IDEAS:
            if idea in page.lower():
                start = page.lower().index(idea)
                found.append((f"on {idea}: {' '.join(page[max(0, start - 200):start + 300].split())}", f"page {number}"))
    return {"exhibits": [Exhibit(number=f"P{n}", criterion="paper", says=says, place=place)
                         for n, (says, place) in enumerate(found, 1)]}
