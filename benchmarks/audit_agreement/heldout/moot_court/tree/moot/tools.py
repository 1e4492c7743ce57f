import ast
import contextlib
import re
import subprocess
import tempfile
from pathlib import Path

from .models import Finding

URL = re.compile(r"^(https://[\w.-]+/[\w.-]+/[\w.-]+|/[\w./-]+)$")


class CloneFailed(RuntimeError):
    pass


@contextlib.contextmanager
def checkout(url: str):
    """Clone into a temporary directory that is gone afterwards."""
    if not URL.match(url):
        raise CloneFailed(f"not an address I accept: {url!r}")
    with tempfile.TemporaryDirectory(prefix="moot-") as tmp:
        target = Path(tmp) / "repo"
        try:
            done = subprocess.run(
                ["git", "clone", "--quiet", "--", url, str(target)],
                capture_output=True, text=True, timeout=120, env={"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin"},
            )
        except subprocess.TimeoutExpired as exc:
            raise CloneFailed("git took more than two minutes") from exc
        if done.returncode != 0:
            raise CloneFailed(done.stderr.strip().splitlines()[-1] if done.stderr else "git failed")
        yield target


def git_log(repo: Path) -> Finding:
    done = subprocess.run(["git", "-C", str(repo), "log", "--reverse", "--format=%h %ad %s", "--date=short"],
                          capture_output=True, text=True, timeout=30)
    lines = done.stdout.splitlines()
    return Finding(topic="history", present=len(lines) > 3, where="git log", excerpt="\n".join(lines[:40]))


def graph_calls(repo: Path) -> list[Finding]:
    out = []
    for path in repo.rglob("*.py"):
        try:
            tree = ast.parse(path.read_text(errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("add_"):
                out.append(Finding(topic="graph", present=True, where=f"{path.relative_to(repo)}:{node.lineno}",
                                   excerpt=ast.unparse(node)[:200]))
    return out or [Finding(topic="graph", present=False)]


def pdf_pages(path: str) -> list[str]:
    import pymupdf

    with pymupdf.open(path) as doc:
        return [page.get_text() for page in doc]
