import os, sys, pickle, json, glob
from flow import graph

cache = {}
if os.path.exists("cache.pkl"):
    cache = pickle.load(open("cache.pkl", "rb"))

def fetch(src):
    # download the data set
    os.system("wget -q -P data " + src)
    os.system("cd data && unzip -o " + src.split("/")[-1])

if __name__ == "__main__":
    if len(sys.argv) > 1:
        fetch(sys.argv[1])
    os.makedirs("out", exist_ok=True)
    for f in glob.glob("data/*.txt"):
        try:
            state = {"text": open(f).read(), "file": f}
            if f in cache:
                result = cache[f]
            else:
                result = graph.invoke(state)
                cache[f] = result
            json.dump(result, open("out/labels.json", "w"))
        except Exception:
            pass
    pickle.dump(cache, open("cache.pkl", "wb"))
    print("done")
