import json
import time

from colorama import Fore, Style
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.prebuilt import create_react_agent

import tools

GAME_MASTER = """You are the game master of a horror adventure for teenagers. Speak to the player as "you", at most
four sentences, never say what the player feels. The tools are the truth: never invent rooms, things or exits, and never
let the player win without the tool saying so. Call look after each move. For risky actions roll dice."""

WHISPER = """You are the voice in the walls. Given the last scene, whisper one sentence of at most eight words.
If the player should leave the house for a moment of rest, write REST."""

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.9)
master = create_react_agent(llm, tools.ALL, prompt=GAME_MASTER, checkpointer=MemorySaver())
CONFIG = {"configurable": {"thread_id": "game"}}


def say(text, color=Fore.WHITE):
    for c in text:
        print(color + c, end="", flush=True)
        time.sleep(0.005)
    print(Style.RESET_ALL)


def whisper(scene):
    text = llm.invoke([("system", WHISPER), ("user", scene)]).content
    if "REST" in text:
        tools.WORLD["fear"] = max(0, tools.WORLD["fear"] - 3)
        return ""
    return text


def points():
    w = tools.WORLD
    return 100 - w["turns"] * 2 - w["fear"] * 5 + 20 * w["calm"]


def highscore(name):
    try:
        with open("highscores.json") as f:
            scores = json.load(f)
    except Exception:
        scores = []
    scores.append([name, points()])
    scores.sort(key=lambda s: -s[1])
    with open("highscores.json", "w") as f:
        json.dump(scores[:10], f)
    return scores[:10]


def turn(text):
    tools.WORLD["turns"] += 1
    try:
        out = master.invoke({"messages": [("user", text)]}, CONFIG)
        return out["messages"][-1].content
    except Exception:
        return "The house is silent."


def main():
    name = input("Your name: ")
    say(turn(f"The game begins. The player is called {name}. Describe where they wake up."))
    while True:
        text = input("> ")
        if text == "quit":
            break
        scene = turn(text)
        say(scene)
        if tools.WORLD["open"]:
            say("You are out. The grass is wet.", Fore.GREEN)
            for n, p in highscore(name):
                print(n, p)
            break
        if tools.WORLD["fear"] >= 12:
            say("You sit down in the second chair and begin to hum.", Fore.RED)
            break
        if tools.WORLD["turns"] % 4 == 0:
            say(whisper(scene), Fore.BLUE)


if __name__ == "__main__":
    main()
