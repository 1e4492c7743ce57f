import ast
import os
import subprocess
import tempfile

import fitz

from models import Fact


def clone(url):
    """Clone to a temp dir and return it."""
    folder = tempfile.mkdtemp()
    subprocess.run(["git", "clone", url, folder], check=True, capture_output=True)
    return folder


def repo_facts(folder):
    facts = []
    log = subprocess.run(["git", "log", "--oneline"], cwd=folder, capture_output=True, text=True).stdout
    n = len(log.splitlines())
    facts.append(Fact(source="repo", name="commits", ok=n > 3, detail=f"{n} commits"))

    py, secrets, tests = 0, [], 0
    for root, dirs, files in os.walk(folder):
        if ".git" in root:
            continue
        for f in files:
            if f == ".env":
                secrets.append(os.path.join(root, f))
            if not f.endswith(".py"):
                continue
            py += 1
            if f.startswith("test"):
                tests += 1
            try:
                tree = ast.parse(open(os.path.join(root, f)).read())
            except Exception:
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "eval":
                    secrets.append(f"eval in {f}")
    facts.append(Fact(source="repo", name="python", ok=py > 0, detail=f"{py} python files"))
    facts.append(Fact(source="repo", name="tests", ok=tests > 0, detail=f"{tests} test files"))
    facts.append(Fact(source="repo", name="security", ok=not secrets, detail=", ".join(secrets) or "nothing found"))
    return facts


def pitch_facts(path):
    try:
        doc = fitz.open(path)
    except Exception as e:
        return [Fact(source="pitch", name="readable", ok=False, detail=str(e))]
    text = "".join(page.get_text() for page in doc)
    facts = [Fact(source="pitch", name="length", ok=len(text) > 1000, detail=f"{len(text)} chars")]
    for word in ("problem", "solution", "market", "demo"):
        facts.append(Fact(source="pitch", name=word, ok=word in text.lower(), detail=f"mentions {word}"))
    return facts
