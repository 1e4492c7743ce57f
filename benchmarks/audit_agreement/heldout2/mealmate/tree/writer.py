from langchain_openai import ChatOpenAI

from state import PlanState

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0)


def write(state: PlanState):
    with open("plan.md", "w") as f:
        f.write("# Dinners\n\n")
        for day, dish in state["plan"].items():
            f.write(f"- **{day}**: {dish} ({state['kcal'][day]} kcal)\n")
    text = llm.invoke(
        "Make a shopping list for these dinners, one thing per line, without what is in the fridge.\n"
        f"Dinners: {', '.join(state['plan'].values())}\nFridge: {', '.join(state['fridge'])}"
    ).content
    things = [line.strip("-* ") for line in text.splitlines() if line.strip()]
    with open("shopping.txt", "w") as f:
        f.write("\n".join(sorted(set(things))) + "\n")
    return {}


def give_up(state: PlanState):
    print("Sorry, no plan after", state["tries"], "tries:", state["complaint"])
    return {}
