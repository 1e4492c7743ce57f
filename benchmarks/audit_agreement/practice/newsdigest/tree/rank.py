import re

KEYWORDS = {"python": 3, "security": 4, "energy": 2, "railway": 5}


def score(item):
    text = (item["title"] + " " + item["text"]).lower()
    return sum(w * len(re.findall(k, text)) for k, w in KEYWORDS.items())


def similar(a, b):
    wa, wb = set(a["title"].lower().split()), set(b["title"].lower().split())
    return len(wa & wb) / max(1, len(wa | wb)) > 0.7


def dedupe(items):
    out = []
    for it in items:
        if not any(similar(it, o) for o in out):
            out.append(it)
    return out
