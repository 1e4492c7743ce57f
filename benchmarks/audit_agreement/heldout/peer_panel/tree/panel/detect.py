import os
import re
import subprocess
import tempfile

from .schema import Fact, PanelState

_tmp = tempfile.mkdtemp()


def clone(state: PanelState):
    dest = os.path.join(_tmp, "repo")
    subprocess.run(["git", "clone", state["url"], dest], check=True)
    return {}


def scan_code(state: PanelState):
    facts = []
    for root, _, names in os.walk(os.path.join(_tmp, "repo")):
        for name in names:
            if not name.endswith(".py"):
                continue
            p = os.path.join(root, name)
            for i, line in enumerate(open(p, errors="ignore"), 1):
                if re.search(r"StateGraph|add_edge|add_conditional_edges|with_structured_output|os\.system", line):
                    facts.append(Fact(source=os.path.relpath(p, _tmp), statement=line.strip(), line=i))
    return {"facts": facts}


def scan_log(state: PanelState):
    r = subprocess.run(["git", "log", "--oneline"], cwd=os.path.join(_tmp, "repo"), capture_output=True, text=True)
    return {"facts": [Fact(source="git", statement=l) for l in r.stdout.splitlines()]}
