# export to CSV for the ML team
import csv, json

def export(path="out/labels.json", dest="out/labels.csv"):
    data = json.load(open(path))
    w = csv.writer(open(dest, "w"))
    w.writerow(["file", "label", "confidence"])
    for d in data:
        w.writerow([d["file"], d["label"], d["confidence"]])

def stats(path="out/labels.json"):
    data = json.load(open(path))
    n = {}
    for d in data:
        n[d["label"]] = n.get(d["label"], 0) + 1
    return n

def dedupe(rows):
    seen = set()
    out = []
    for r in rows:
        if r["file"] not in seen:
            out.append(r)
            seen.add(r["file"])
    return out
