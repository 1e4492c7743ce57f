import os
import subprocess
import tempfile

from langgraph.types import Command


def fetch(d):
    """Clone, or try once more, or give up."""
    path = tempfile.mkdtemp()
    p = subprocess.run(["git", "clone", "--depth", "200", d.repo, path + "/r"], capture_output=True, text=True)
    if p.returncode != 0:
        if d.tries < 2:
            return Command(goto="fetch", update={"tries": d.tries + 1})
        return Command(goto="mistrial", update={"clues": {"error": p.stderr}})
    return Command(goto=["dig_history", "dig_code"], update={"clues": {"path": path + "/r"}})


def dig_history(d):
    log = subprocess.run(["git", "log", "--format=%h|%ad|%s"], cwd=d.clues["path"], capture_output=True, text=True).stdout
    return {"clues": {"history": log.splitlines()}}


def dig_code(d):
    hits = {}
    for base, _, files in os.walk(d.clues["path"]):
        for f in files:
            if f.endswith(".py"):
                text = open(os.path.join(base, f), encoding="utf-8", errors="ignore").read()
                hits[f] = [k for k in ("StateGraph", "Annotated", "with_structured_output", "os.system") if k in text]
    return {"clues": {"code": hits}}
