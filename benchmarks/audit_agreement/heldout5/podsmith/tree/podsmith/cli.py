import argparse
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from .flow import make
from .model import Episode


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("transcript", nargs="?", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--guest", default="")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--resume", metavar="EPISODE")
    args = parser.parse_args()
    if not args.transcript and not args.resume:
        parser.error("a transcript or --resume")
    key = args.resume or args.transcript.stem
    config = {"configurable": {"thread_id": key}, "max_concurrency": 4}
    with SqliteSaver.from_conn_string("podsmith.db") as saver:
        produce = make(saver)
        if args.resume:
            print(produce.invoke(None, config))
        else:
            episode = Episode(key=key, title=args.title or key, guest=args.guest, path=str(args.transcript),
                              publish=args.publish)
            print(produce.invoke(episode, config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
