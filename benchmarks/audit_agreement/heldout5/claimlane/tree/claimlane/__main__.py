import re
import sys
import uuid

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from .graph import build


def main():
    text = " ".join(sys.argv[1:])
    if not text:
        print("usage: python -m claimlane CLAIM")
        sys.exit(2)
    m = re.search(r"\b([A-Z]{2}-\d{4})\b", text)
    if not m:
        print("I need a policy number like KX-2201")
        sys.exit(2)
    app = build()
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}
    state = app.invoke({"messages": [HumanMessage(text)], "policy_number": m.group(1)}, config)
    while "__interrupt__" in state:
        ask = state["__interrupt__"][0].value
        print(ask["letter"])
        answer = input(f"Pay {ask['amount']:.2f} EUR? [y/N] ")
        state = app.invoke(Command(resume=answer), config)
    print(state["letter"])
    print("paid" if state["approved"] and state["amount"] > 0 else "not paid")


if __name__ == "__main__":
    main()
