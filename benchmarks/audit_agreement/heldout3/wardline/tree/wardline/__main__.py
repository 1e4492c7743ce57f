import getpass
import json
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .practice import HOME
from .triage import build


def config(message: str) -> dict:
    return {"configurable": {"thread_id": message}, "recursion_limit": 25}


def take_in(graph, path: str) -> int:
    failed = 0
    for one in json.loads(Path(path).read_text("utf-8")):
        if graph.get_state(config(one["id"])).values:
            continue  # known already
        try:
            end = graph.invoke({"message": one["id"], "patient": one["patient"], "text": one["text"]}, config(one["id"]))
        except Exception as error:  # one bad message must not hold up the others
            print(f"{one['id']}: FAILED, read it by hand: {error}", file=sys.stderr)
            failed += 1
            continue
        print(one["id"], *end.get("notes", ["waits on the desk"]))
    return 1 if failed else 0


def desk(graph, saver) -> int:
    for thread in sorted({one.config["configurable"]["thread_id"] for one in saver.list(None)}):
        waiting = graph.get_state(config(thread)).interrupts
        if not waiting:
            continue
        asked = waiting[0].value
        print(f"\n--- {asked['message']}\n{asked['text']}\n", *asked["notes"], f"\nDraft: {asked['reply'] or '(none)'}")
        choice = input("[s]end, [e]dit, [d]iscard, [l]ater? ").strip().lower()
        if choice == "l":
            continue
        reply = input("reply: ") if choice == "e" else asked["reply"]
        said = {"do": "send" if choice in ("s", "e") else "discard", "reply": reply, "nurse": getpass.getuser()}
        graph.invoke(Command(resume=said), config(thread))
    return 0


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in ("import", "desk"):
        print("usage: wardline import FILE | desk", file=sys.stderr)
        return 2
    with SqliteSaver.from_conn_string(str(HOME / "runs.sqlite")) as saver:
        graph = build(saver)
        return desk(graph, saver) if sys.argv[1] == "desk" else take_in(graph, sys.argv[2])


sys.exit(main())
