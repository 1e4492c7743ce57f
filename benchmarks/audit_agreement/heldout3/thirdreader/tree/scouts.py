"""Scouts collect. They do not judge."""
import ast
import os
import re


async def history_scout(shelf) -> dict:
    log = await shelf.git("log", "--reverse", "--format=%ad %s", "--date=short")
    lines = log.splitlines()
    days = {line[:10] for line in lines}
    return {
        "history": [
            {"what": f"{len(lines)} commits on {len(days)} days", "where": "git log", "good": len(lines) > 5},
            {"what": "; ".join(lines[:15]), "where": "git log", "good": None},
        ]
    }


async def code_scout(shelf) -> dict:
    facts = []
    classes, shells, nodes = [], [], []
    for name, text in shelf.sources():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            facts.append({"what": "does not parse", "where": name, "good": False})
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    if ast.unparse(base) in ("BaseModel", "TypedDict"):
                        classes.append(f"{name}:{node.name}")
            if isinstance(node, ast.Call):
                f = ast.unparse(node.func)
                if f == "os.system" or any(k.arg == "shell" for k in node.keywords):
                    shells.append(f"{name}:{node.lineno}")
                if f.endswith("add_node") or f.endswith("gather") or f.endswith("create_task"):
                    nodes.append(f"{name}:{node.lineno} {ast.unparse(node)[:60]}")
    facts.append({"what": "typed records: " + ", ".join(classes[:10]), "where": "*", "good": bool(classes)})
    facts.append({"what": "steps: " + "; ".join(nodes[:20]), "where": "*", "good": bool(nodes)})
    if shells:
        facts.append({"what": "SHELL", "where": ", ".join(shells), "good": False})
    return {"code": facts}


async def paper_scout(shelf, report: str) -> dict:
    with open(report, errors="replace") as f:
        text = f.read()
    named = set(re.findall(r"[\w/]+\.py", text))
    have = {name for name, _ in shelf.sources()}
    names = {os.path.basename(h) for h in have}
    lost = sorted(n for n in named if os.path.basename(n) not in names)
    return {
        "paper": [
            {"what": "files named that do not exist: " + ", ".join(lost), "where": report, "good": not lost},
            {"what": text[:4000], "where": report, "good": None},
        ]
    }
