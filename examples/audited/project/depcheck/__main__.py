"""``python -m depcheck URL``: print the verdict."""

import os
import sys

from langchain.chat_models import init_chat_model

from depcheck.graph import build
from depcheck.tools import scratch
from depcheck.verdict import markdown


def main() -> int:
    """Exit 0 with a verdict, 1 without."""
    model = init_chat_model(os.environ["DEPCHECK_MODEL"])
    with scratch() as folder:
        state = build(model).invoke({"url": sys.argv[1], "folder": folder})
    if state.get("problem"):
        print(f"no verdict: {state['problem']}", file=sys.stderr)
        return 1
    print(markdown(state))
    return 0


if __name__ == "__main__":
    sys.exit(main())
