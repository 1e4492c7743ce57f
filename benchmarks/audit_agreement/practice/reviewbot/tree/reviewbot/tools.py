import subprocess
from pathlib import Path

from langchain_core.tools import ToolException, tool

ROOT = Path.cwd().resolve()


def inside(path: str) -> Path:
    full = (ROOT / path).resolve()
    if not full.is_relative_to(ROOT):
        raise ToolException(f"{path} is outside the repository")
    return full


@tool
def read_file(path: str, first: int = 1, last: int = 200) -> str:
    """Lines of a file of the repository."""
    full = inside(path)
    if not full.is_file():
        raise ToolException(f"no file {path}")
    return "\n".join(full.read_text(errors="replace").splitlines()[first - 1:min(last, first + 400)])


@tool
def grep(word: str) -> str:
    """Where a word stands in the tracked files."""
    try:
        done = subprocess.run(["git", "grep", "-n", "-F", "-e", word], cwd=ROOT, capture_output=True, text=True, timeout=15)
    except subprocess.TimeoutExpired as exc:
        raise ToolException("git grep took too long") from exc
    if done.returncode > 1:
        raise ToolException(done.stderr.strip())
    return done.stdout[:5000] or "nothing"


for each in (read_file, grep):
    each.handle_tool_error = True
