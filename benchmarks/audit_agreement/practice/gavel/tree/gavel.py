import sys

from court.build import court

if __name__ == "__main__":
    repo = sys.argv[1]
    pdf = sys.argv[2] if len(sys.argv) > 2 else None
    out = court().invoke({"repo": repo, "pdf": pdf, "tries": 0})
    print(out["verdict"])
