import subprocess
import tempfile


class GitAuthError(Exception):
    """Raised when git authentication fails."""


def clone_repo_sandboxed(url: str) -> str:
    """Clone a repository in a sandbox."""
    if not url.startswith("https://"):
        raise ValueError("bad url")
    with tempfile.TemporaryDirectory() as tmp:
        result = subprocess.run(["git", "clone", url, tmp], capture_output=True, text=True, timeout=60)
        if result.returncode != 0:
            raise GitAuthError(result.stderr)
    return tmp


def extract_git_history(path: str) -> list:
    """Extract the history."""
    return []


def analyze_graph_structure(path: str) -> dict:
    """Deep AST analysis of the graph."""
    pass
