import json
import sys
from pathlib import Path

from dotenv import load_dotenv

from src.graph import build_graph

load_dotenv()


def main():
    if len(sys.argv) != 3:
        print("usage: python -m src.main REPO_URL REPORT.pdf")
        sys.exit(2)
    rubric = json.loads((Path(__file__).parent / "rubric.json").read_text())["dimensions"]
    state = {
        "repo_url": sys.argv[1],
        "pdf_path": sys.argv[2],
        "repo_dir": "",
        "rubric": rubric,
        "evidences": {},
        "opinions": [],
        "errors": [],
        "results": [],
    }
    final = build_graph().invoke(state)
    for r in final["results"]:
        print(r.name, r.final_score)
    print("Report: reports/audit_report.md")


if __name__ == "__main__":
    main()
