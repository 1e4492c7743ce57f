import re

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

from state import PlanState
from tools import TOOLS, calories

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

PROMPT = """You plan dinners for a week. Use the tools to find dishes that use up the fridge.
Answer with one line per day, exactly like this:

Monday: Pumpkin risotto (620 kcal)
"""

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.8)
cook_agent = create_react_agent(llm, TOOLS, prompt=PROMPT)

LINE = re.compile(r"(\w+day):\s*(.+?)\s*\((\d+)\s*kcal\)")


def cook(state: PlanState):
    ask = f"Wish: {state['wish']}\nFridge: {', '.join(state['fridge'])}"
    if state.get("complaint"):
        ask += f"\nYour last plan was rejected: {state['complaint']}"
    out = cook_agent.invoke({"messages": [("user", ask)]})
    text = out["messages"][-1].content
    plan, kcal = {}, {}
    for day, dish, k in LINE.findall(text):
        plan[day] = dish
        kcal[day] = int(k)
    return {"plan": plan, "kcal": kcal, "tries": state.get("tries", 0) + 1, "messages": [out["messages"][-1]]}


def check(state: PlanState):
    """Rules, no LLM."""
    missing = [d for d in DAYS if d not in state["plan"]]
    if missing:
        return {"complaint": "no dinner on " + ", ".join(missing)}
    dishes = list(state["plan"].values())
    twice = {d for d in dishes if dishes.count(d) > 1}
    if twice:
        return {"complaint": "twice: " + ", ".join(twice)}
    limit = re.search(r"(\d+)\s*kcal", state["wish"])
    if limit:
        over = [d for d in DAYS if state["kcal"][d] > int(limit.group(1))]
        if over:
            return {"complaint": "too many calories on " + ", ".join(over)}
    return {"complaint": ""}


def next_step(state: PlanState):
    if not state["complaint"]:
        return "write"
    if state["tries"] >= 3:
        return "give_up"
    return "cook"


def nutrition_score(state: PlanState):
    """Average distance between what the agent says and our table."""
    diffs = [abs(calories.invoke({"dish": dish}) - state["kcal"][day]) for day, dish in state["plan"].items()]
    return sum(diffs) / max(len(diffs), 1)
