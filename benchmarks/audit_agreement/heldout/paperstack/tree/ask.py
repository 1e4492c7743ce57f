import json
import sys
from pathlib import Path

from paperstack.pipeline import pipeline

if len(sys.argv) != 3:
    sys.exit("usage: ask.py FOLDER QUESTION")
folder, question = sys.argv[1:]
if not Path(folder).is_dir():
    sys.exit(f"{folder} is not a folder")
state = pipeline.invoke({"folder": folder, "question": question})
print(state["answer"])
for hit in state["hits"]:
    print(f"  {hit['file']} p.{hit['page']}")
with open("answers.jsonl", "a") as f:
    f.write(json.dumps({"question": question, "answer": state["answer"], "grounded": state["grounded"]}) + "\n")
