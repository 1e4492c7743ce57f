import ast
import asyncio
import re
from pathlib import Path

from pypdf import PdfReader

from .clone import git_log
from .types import Exhibit

SECRET = re.compile(r"(sk-[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|ghp_[A-Za-z0-9]{30,})")


async def from_history(repo: Path) -> list[Exhibit]:
    lines = [line for line in await git_log(repo) if "|" in line]
    people = {line.split("|")[2] for line in lines}
    return [
        Exhibit("history", f"{len(lines)} commits", "git log", len(lines) >= 5),
        Exhibit("history", f"{len(people)} authors", "git log", bool(people)),
    ]


def scan(repo: Path) -> list[Exhibit]:
    found: list[Exhibit] = []
    tests = 0
    for path in sorted(repo.rglob("*.py")):
        name = str(path.relative_to(repo))
        text = path.read_text("utf-8", errors="replace")
        if SECRET.search(text):
            found.append(Exhibit("secret", "a key in the source", name, False))
        try:
            tree = ast.parse(text)
        except SyntaxError as e:
            found.append(Exhibit("syntax", "does not parse", f"{name}:{e.lineno}", False))
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                source = ast.unparse(node.func)
                if source in ("eval", "exec", "os.system"):
                    found.append(Exhibit("danger", f"{source} is called", f"{name}:{node.lineno}", False))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                tests += any(isinstance(sub, ast.Assert) for sub in ast.walk(node))
    found.append(Exhibit("tests", f"{tests} tests with an assertion", "tests", tests > 0))
    found.append(Exhibit("readme", "a README", "README.md", (repo / "README.md").exists()))
    return found


async def from_code(repo: Path) -> list[Exhibit]:
    return await asyncio.to_thread(scan, repo)


def read_pdf(pdf: Path, repo: Path) -> list[Exhibit]:
    text = "\n".join(page.extract_text() or "" for page in PdfReader(pdf).pages)
    found = []
    for name in sorted(set(re.findall(r"[\w./-]+\.py", text))):
        found.append(Exhibit("report", f"names {name}", str(pdf), (repo / name).exists()))
    return found


async def from_report(pdf: Path, repo: Path) -> list[Exhibit]:
    return await asyncio.to_thread(read_pdf, pdf, repo)
