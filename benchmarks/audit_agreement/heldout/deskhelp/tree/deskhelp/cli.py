import sys
import uuid

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .graph import build


def chat(app, thread):
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 12}
    for line in sys.stdin:
        end = app.invoke({"messages": [("user", line.strip())]}, config)
        if "__interrupt__" in end:
            print(f"(waits for the office: deskhelp decide {thread} yes|no)")
            return
        print(end["messages"][-1].content)


def main():
    command, *rest = sys.argv[1:] or ["chat"]
    with SqliteSaver.from_conn_string("threads.sqlite") as saver:
        app = build(saver)
        if command == "chat":
            chat(app, str(uuid.uuid4()))
        elif command == "decide":
            thread, word = rest
            end = app.invoke(Command(resume=word), {"configurable": {"thread_id": thread}})
            print(end["messages"][-1].content)
        elif command == "pending":
            for item in saver.list(None):
                if item.pending_writes:
                    print(item.config["configurable"]["thread_id"])
        else:
            sys.exit(f"deskhelp: no command {command}")
