import argparse
import sys
import uuid

from .workflow import audit


def main(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("repo")
    p.add_argument("--report")
    a = p.parse_args(argv)
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}
    verdict = audit.invoke({"repo": a.repo, "report": a.report}, config)
    if verdict is None:
        print("no verdict, see out/verdict.md", file=sys.stderr)
        return 1
    print(f"overall {verdict.overall:.1f}")
    return 0


raise SystemExit(main())
