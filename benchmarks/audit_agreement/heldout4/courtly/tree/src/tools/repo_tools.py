"""Forensic tools for repositories."""
import ast
import os
import subprocess
import tempfile


def clone_repo(url: str) -> str:
    """Clone into a sandboxed temp dir."""
    target = tempfile.mkdtemp(prefix="courtly_")
    subprocess.run(["git", "clone", url, target], check=True, capture_output=True, text=True)
    return target


def git_log(path: str) -> list[str]:
    out = subprocess.run(
        ["git", "log", "--oneline", "--reverse"], cwd=path, capture_output=True, text=True
    )
    return out.stdout.splitlines()


def python_files(path: str) -> list[str]:
    found = []
    for root, dirs, files in os.walk(path):
        dirs[:] = [d for d in dirs if d not in (".git", "node_modules", ".venv")]
        for f in files:
            if f.endswith(".py"):
                found.append(os.path.join(root, f))
    return found


def find_classes(path: str, bases: tuple[str, ...]) -> list[str]:
    """AST walk over all files. Names of classes with one of these bases."""
    hits = []
    for f in python_files(path):
        try:
            tree = ast.parse(open(f, encoding="utf-8").read())
        except Exception:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [getattr(b, "id", getattr(b, "attr", "")) for b in node.bases]
                if any(b in names for b in bases):
                    hits.append(f"{os.path.relpath(f, path)}:{node.lineno} {node.name}")
    return hits


def find_calls(path: str, wanted: tuple[str, ...]) -> list[str]:
    hits = []
    for f in python_files(path):
        try:
            tree = ast.parse(open(f, encoding="utf-8").read())
        except Exception:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in wanted:
                    hits.append(f"{os.path.relpath(f, path)}:{node.lineno} {name}()")
    return hits
