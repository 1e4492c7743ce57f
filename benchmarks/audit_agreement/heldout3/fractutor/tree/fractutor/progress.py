import json
import os

FILE = "progress.json"


def load(name):
    if not os.path.exists(FILE):
        return {}
    with open(FILE) as f:
        return json.load(f).get(name, {})


def save(name, level, solved):
    everybody = {}
    if os.path.exists(FILE):
        with open(FILE) as f:
            everybody = json.load(f)
    before = everybody.get(name, {"solved": 0})
    everybody[name] = {"level": level, "solved": before["solved"] + solved}
    with open(FILE, "w") as f:
        json.dump(everybody, f, indent=2)
