import logging
import sys
import uuid

from .graph import build_graph
from .publish import publish


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    topic = " ".join(sys.argv[1:]) or "What limits the context length of transformers?"
    config = {"configurable": {"thread_id": str(uuid.uuid4())}, "recursion_limit": 50}
    final = build_graph().invoke({"topic": topic, "notes": []}, config)
    print("published", publish(final))


if __name__ == "__main__":
    main()
