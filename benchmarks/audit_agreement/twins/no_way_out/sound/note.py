import sys
from pathlib import Path

from notesmith.loop import graph

if __name__ == "__main__":
    source = Path(sys.argv[1])
    if not source.is_file():
        sys.exit(f"no file {source}")
    end = graph.invoke({"changes": source.read_text(), "round": 0}, {"recursion_limit": 20})
    text = "\n".join([f"# {end['title']}", "", end["note"], ""])
    Path("NOTE.md").write_text(text)
    print("rounds:", end["round"])
