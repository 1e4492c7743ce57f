# merge the labels of two people (names are in the file name)
import json, sys, os

def load(p):
    return {d["file"]: d["label"] for d in json.load(open(p))}

def merge(a, b):
    out = []
    for f in a:
        if f in b and a[f] == b[f]:
            out.append({"file": f, "label": a[f], "confidence": 1})
        elif f in b:
            out.append({"file": f, "label": "???", "confidence": 0})
    return out

if __name__ == "__main__":
    json.dump(merge(load(sys.argv[1]), load(sys.argv[2])), open("merged.json", "w"))
    os.system("open merged.json")
