"""Investigators. They look and say what they saw; they do not score."""

from __future__ import annotations

import ast
from pathlib import Path

from .fetch import git
from .records import Finding

SHELLS = {("os", "system"), ("os", "popen")}


def history(repo: Path) -> list[Finding]:
    lines = git(repo, "log", "--reverse", "--format=%h %as %s", limit=30).splitlines()
    days = {line.split()[1] for line in lines}
    return [Finding(id="h1", source="history", criterion="docs", place=f"{lines[0].split()[0]}..{lines[-1].split()[0]}",
                    statement=f"{len(lines)} commits on {len(days)} days", holds=len(lines) > 3 and len(days) > 1)]


def modules(repo: Path) -> dict[str, ast.Module]:
    found = {}
    for path in sorted(repo.rglob("*.py")):
        try:
            found[path.relative_to(repo).as_posix()] = ast.parse(path.read_text("utf-8", errors="replace"))
        except (SyntaxError, ValueError):
            continue
    return found


def is_shell(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        if (function.value.id, function.attr) in SHELLS:
            return True
    return any(word.arg == "shell" and isinstance(word.value, ast.Constant) and word.value.value is True
               for word in call.keywords)


def bases(node: ast.ClassDef) -> set[str]:
    return {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}


def code(repo: Path) -> list[Finding]:
    parsed = modules(repo)
    found: list[Finding] = []

    def add(criterion: str, statement: str, place: str, holds: bool, flaw: bool = False) -> None:
        found.append(Finding(id=f"c{len(found) + 1}", source="code", criterion=criterion, statement=statement,
                             place=place, holds=holds, flaw=flaw))

    typed = [(name, node) for name, tree in parsed.items() for node in ast.walk(tree)
             if isinstance(node, ast.ClassDef) and bases(node) & {"TypedDict", "BaseModel"}]
    for name, node in typed[:12]:
        add("state", f"{node.name} is a typed record", f"{name}:{node.lineno}", True)
    if not typed:
        add("state", "no TypedDict or BaseModel in any module", "*.py", False)
    reducers = [(name, node) for name, tree in parsed.items() for node in ast.walk(tree)
                if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Annotated"
                and "operator" in ast.unparse(node)]
    place = f"{reducers[0][0]}:{reducers[0][1].lineno}" if reducers else "*.py"
    add("state", "reducers on shared keys", place, bool(reducers))
    shells = [(name, node) for name, tree in parsed.items() for node in ast.walk(tree)
              if isinstance(node, ast.Call) and is_shell(node)]
    for name, node in shells:
        add("tools", f"a shell is started: {ast.unparse(node)[:80]}", f"{name}:{node.lineno}", False, flaw=True)
    if not shells:
        add("tools", "no shell is started", "*.py", True)
    add("docs", "a README", "README.md", (repo / "README.md").exists())
    return found


def report(pdf: Path, repo: Path) -> list[Finding]:
    """Files that the report names, and whether they are there."""
    import re

    from pypdf import PdfReader

    there = {path.relative_to(repo).as_posix() for path in repo.rglob("*.py")}
    found = []
    for page, content in enumerate(PdfReader(pdf).pages, 1):
        for name in sorted(set(re.findall(r"[\w/]+\.py\b", content.extract_text()))):
            exists = any(path == name or path.endswith("/" + name) for path in there)
            found.append(Finding(id=f"r{len(found) + 1}", source="report", criterion="docs", place=f"page {page}",
                                 statement=f"the report names {name}", holds=exists))
    return found
