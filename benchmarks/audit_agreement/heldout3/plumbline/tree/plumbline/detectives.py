"""Three detectives: history, code, paper. Each returns findings of its own and knows nothing of the others."""
from __future__ import annotations

import ast
import re
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from .fetch import FetchError, commits
from .records import Case, Finding

BIGGEST = 400_000
PATH = re.compile(r"\b[\w./-]+\.(?:py|toml|json|md|yml)\b")


def _pack(*findings: Finding) -> dict[str, Finding]:
    return {finding.key: finding for finding in findings}


def historian(case: Case) -> Case:
    try:
        log = commits(Path(case["folder"]))
    except FetchError as error:
        return {"troubles": [f"history: {error}"]}
    total = sum(added for _, _, added in log) or 1
    largest = max(log, key=lambda one: one[2], default=("", "", 0))
    share = largest[2] / total
    days = len({date for date, _, _ in log})
    return {"findings": _pack(
        Finding(key="history.steps", found=len(log) >= 5 and days >= 3, place="git log",
                what=f"{len(log)} commits on {days} days"),
        Finding(key="history.bulk", found=share > 0.7, flaw=share > 0.9, place=f"commit '{largest[1]}'",
                what=f"the largest commit adds {share:.0%} of all lines"),
    )}


class _Calls(ast.NodeVisitor):
    def __init__(self) -> None:
        self.shell: list[int] = []
        self.graph: list[str] = []
        self.typed: list[str] = []
        self.timeouts = 0

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        words = {word.arg: word.value for word in node.keywords}
        shell = words.get("shell")
        if name in ("os.system", "os.popen") or (isinstance(shell, ast.Constant) and shell.value is True):
            self.shell.append(node.lineno)
        if name.rpartition(".")[2] in ("add_edge", "add_conditional_edges", "Send"):
            self.graph.append(ast.unparse(node)[:80])
        if name.startswith("subprocess.") and "timeout" in words:
            self.timeouts += 1
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if {ast.unparse(base).rpartition(".")[2] for base in node.bases} & {"BaseModel", "TypedDict"}:
            self.typed.append(node.name)
        self.generic_visit(node)


def code_detective(case: Case) -> Case:
    root = Path(case["folder"])
    shells, edges, typed, timeouts, troubles = [], [], [], 0, []
    for path in sorted(root.rglob("*.py")):
        if path.is_symlink() or path.stat().st_size > BIGGEST:
            continue
        place = path.relative_to(root).as_posix()
        try:
            calls = _Calls()
            calls.visit(ast.parse(path.read_text("utf-8", errors="replace")))
        except (SyntaxError, ValueError, RecursionError) as error:
            troubles.append(f"code: {place} is not read: {error}")
            continue
        shells += [f"{place}:{line}" for line in calls.shell]
        edges += [f"{place}: {edge}" for edge in calls.graph]
        typed += [f"{place}: {name}" for name in calls.typed]
        timeouts += calls.timeouts
    return {"troubles": troubles, "findings": _pack(
        Finding(key="code.shell", found=bool(shells), flaw=bool(shells), place=", ".join(shells[:5]),
                what="a shell is started" if shells else "no shell is started"),
        Finding(key="code.limits", found=timeouts > 0, place=str(root.name),
                what=f"{timeouts} processes with a time limit"),
        Finding(key="code.edges", found=len(edges) > 2, place="; ".join(edges[:8]), what=f"{len(edges)} edges"),
        Finding(key="code.types", found=bool(typed), place="; ".join(typed[:8]), what=f"{len(typed)} typed records"),
    )}


def paper_detective(case: Case) -> Case:
    root = Path(case["folder"])
    try:
        text = "\n".join(page.extract_text() or "" for page in PdfReader(case["paper"]).pages)
    except (OSError, PyPdfError) as error:
        return {"troubles": [f"paper: {error}"]}
    named = sorted(set(PATH.findall(text)))
    lost = [name for name in named if not list(root.rglob(Path(name).name))]
    return {"findings": _pack(
        Finding(key="paper.words", found=len(text) > 1500, place="paper", what=f"{len(text.split())} words"),
        Finding(key="paper.lost", found=bool(lost), place="paper", what="named but not there: " + ", ".join(lost[:8])),
        Finding(key="paper.excerpt", found=bool(text.strip()), place="paper", what=text[:3000]),
    )}
