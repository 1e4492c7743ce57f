import sys

from langchain_core.messages import HumanMessage

from .flow import build_flow


def main() -> None:
    text = " ".join(sys.argv[1:]) or input("What is wrong with your animal? ")
    state = build_flow().invoke({"messages": [HumanMessage(text)]})
    print(state["outcome"])


if __name__ == "__main__":
    main()
