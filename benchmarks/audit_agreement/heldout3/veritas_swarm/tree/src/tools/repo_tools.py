"""Sandboxed repository tooling."""
import ast
import logging
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, List

logger = logging.getLogger(__name__)

GITHUB_URL = re.compile(r"^https://github\.com/[\w.\-]+/[\w.\-]+(\.git)?$")


class RepoCloneError(RuntimeError):
    """Raised when a repository cannot be cloned."""


def clone_repository(url: str, timeout: int = 120) -> tempfile.TemporaryDirectory:
    """Clone a repository into an isolated temporary directory."""
    if not GITHUB_URL.match(url):
        raise RepoCloneError(f"Refusing suspicious URL: {url}")
    sandbox = tempfile.TemporaryDirectory(prefix="veritas_")
    try:
        subprocess.run(
            ["git", "clone", "--depth", "50", url, sandbox.name],
            check=True, capture_output=True, text=True, timeout=timeout,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
        sandbox.cleanup()
        logger.error("clone failed: %s", exc)
        raise RepoCloneError(str(exc)) from exc
    return sandbox


def extract_git_history(path: str) -> List[Dict[str, str]]:
    """Return the commits, oldest first."""
    proc = subprocess.run(
        ["git", "-C", path, "log", "--reverse", "--format=%H|%cI|%s"],
        check=True, capture_output=True, text=True, timeout=30,
    )
    rows = [line.split("|", 2) for line in proc.stdout.splitlines()]
    return [{"hash": h, "date": d, "message": m} for h, d, m in rows]


def analyze_graph_structure(path: str) -> Dict[str, List[str]]:
    """Walk the AST and collect StateGraph wiring."""
    edges, nodes = [], []
    for file in Path(path).rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "add_edge":
                    edges.append(ast.unparse(node))
                elif node.func.attr == "add_node":
                    nodes.append(ast.unparse(node))
    return {"edges": edges, "nodes": nodes}
