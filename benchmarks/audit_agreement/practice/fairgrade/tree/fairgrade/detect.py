import re
import subprocess
from pathlib import Path

from .core import Fact, Grading

HOSTS = ("https://github.com/", "https://gitlab.com/", "/")


def run(*cmd, cwd=None):
    return subprocess.run(cmd, cwd=cwd, capture_output=True, text=True, timeout=60, check=True).stdout


def clone(s: Grading):
    if not s.repo_url.startswith(HOSTS):
        return {"errors": [f"host not allowed: {s.repo_url}"]}
    try:
        run("git", "clone", "--", s.repo_url, s.workdir + "/repo")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
        return {"errors": [str(e)]}
    return {}


def history(s: Grading):
    lines = run("git", "log", "--format=%h %s", cwd=s.workdir + "/repo").splitlines()
    return {"facts": [Fact(detective="history", text=x, place=x[:7]) for x in lines[:40]]}


def code(s: Grading):
    facts = []
    for p in Path(s.workdir, "repo").rglob("*.py"):
        for n, line in enumerate(p.read_text(errors="replace").splitlines(), 1):
            if re.search(r"StateGraph|add_edge|Send\(|structured|subprocess|os\.system|Annotated", line):
                facts.append(Fact(detective="code", text=line.strip()[:160], place=f"{p.name}:{n}"))
    return {"facts": facts[:150]}
