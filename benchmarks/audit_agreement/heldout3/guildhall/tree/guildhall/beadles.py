"""Four beadles look, each at one thing."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pymupdf

from .porter import Refused, git
from .state import Exhibit, Hall


def trees(folder: str) -> Iterator[tuple[str, ast.Module]]:
    root = Path(folder)
    for path in sorted(root.rglob("*.py")):
        if path.is_symlink() or path.stat().st_size > 300_000:
            continue
        try:
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text("utf-8", errors="replace"))
        except (SyntaxError, ValueError):
            continue


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


async def history(hall: Hall) -> dict:
    try:
        log = (await git("-C", hall.folder, "log", "--format=%cs %s")).splitlines()
    except Refused as error:
        return {"complaints": [f"history: {error}"]}
    days = {line[:10] for line in log}
    return {"exhibits": [
        Exhibit(number="H1", topic="history", holds=len(log) > 4, says=f"{len(log)} commits", where="git log"),
        Exhibit(number="H2", topic="history", holds=len(days) > 2, says=f"{len(days)} days", where="git log"),
    ]}


async def workflow(hall: Hall) -> dict:
    edges, ways = [], []
    for name, tree in trees(hall.folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                if called(node).endswith((".add_edge", "gather", "create_task")) or called(node) == "Send":
                    edges.append(f"{name}:{node.lineno}")
                if called(node).endswith(".add_conditional_edges") or called(node) == "Command":
                    ways.append(f"{name}:{node.lineno}")
    return {"exhibits": [
        Exhibit(number="W1", topic="workflow", holds=len(edges) > 3, says=f"{len(edges)} connections", where=" ".join(edges[:8])),
        Exhibit(number="W2", topic="workflow", holds=bool(ways), says=f"{len(ways)} decisions", where=" ".join(ways[:8])),
    ]}


async def safety(hall: Hall) -> dict:
    shells, limits = [], []
    for name, tree in trees(hall.folder):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            words = {word.arg: word.value for word in node.keywords}
            shell = isinstance(words.get("shell"), ast.Constant) and words["shell"].value is True
            if shell or called(node) in ("os.system", "eval", "exec"):
                shells.append(f"{name}:{node.lineno}")
            if "timeout" in words:
                limits.append(f"{name}:{node.lineno}")
    return {"exhibits": [
        Exhibit(number="S1", topic="safety", holds=not shells, danger=bool(shells), where=" ".join(shells[:8]) or "-",
                says="runs text from outside" if shells else "runs no text"),
        Exhibit(number="S2", topic="safety", holds=bool(limits), says=f"{len(limits)} time limits", where=" ".join(limits[:8])),
    ]}


async def paper(hall: Hall) -> dict:
    try:
        with pymupdf.open(hall.paper) as document:
            text = "\n".join(page.get_text() for page in document)
    except (RuntimeError, OSError) as error:
        return {"complaints": [f"paper: {error}"]}
    there = {path.name for path in Path(hall.folder).rglob("*")}
    lost = [name for name in re.findall(r"[\w/.-]+\.py\b", text) if Path(name).name not in there]
    return {"exhibits": [
        Exhibit(number="P1", topic="paper", holds=not lost, says="missing: " + ", ".join(lost[:6]), where=hall.paper),
        Exhibit(number="P2", topic="paper", holds=len(text) > 1000, says=text[:2500], where=hall.paper),
    ]}
