import argparse
import uuid

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .planner import make_planner
from .providers import FromFiles


def main():
    p = argparse.ArgumentParser(prog="tripsmith")
    sub = p.add_subparsers(dest="command", required=True)
    sub.add_parser("plan").add_argument("request")
    book = sub.add_parser("book")
    book.add_argument("thread")
    book.add_argument("answer", choices=["yes", "no"])
    args = p.parse_args()
    with SqliteSaver.from_conn_string("trips.sqlite") as saver:
        planner = make_planner(FromFiles(), saver)
        thread = getattr(args, "thread", None) or uuid.uuid4().hex[:8]
        config = {"configurable": {"thread_id": thread}, "recursion_limit": 25}
        end = planner.invoke({"request": args.request} if args.command == "plan" else Command(resume=args.answer), config)
    for pause in end.get("__interrupt__", []):
        print(f"{pause.value}\nbook it: tripsmith book {thread} yes")
    if end.get("message"):
        print(end["message"])
