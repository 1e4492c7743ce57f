"""The subgraph that writes a reply: write, review, at most three rounds."""
from langgraph.graph import END, START, StateGraph

from .models import ask
from .state import Draft, Review, Writing

ROUNDS = 3
WRITE = (
    "You draft replies of a general practice. Friendly, short, in the patient's language. No diagnosis, no dose, no "
    "advice on treatment: for these the patient is offered a call. Use the facts, invent none."
)
REVIEW = "You review a reply before a nurse sees it. Be strict about medical advice of any kind."


def write(state: Writing) -> Writing:
    wish = f"\n\nYour last draft was refused: {state['remark']}" if state.get("remark") else ""
    facts = "\n".join(state.get("facts", [])) or "none"
    draft = ask(Draft, WRITE, f"Message:\n{state['text']}\n\nFacts:\n{facts}{wish}")
    return {"reply": draft.reply if draft else "", "round": state.get("round", 0) + 1}


def review(state: Writing) -> Writing:
    if not state["reply"]:
        return {"remark": "the draft was empty"}
    seen = ask(Review, REVIEW, f"Message:\n{state['text']}\n\nReply:\n{state['reply']}")
    if seen is None:
        return {"remark": "the review could not be read"}
    if seen.gives_medical_advice:
        return {"remark": f"medical advice. {seen.remark}"}
    return {"remark": "" if seen.answers_the_question else f"does not answer. {seen.remark}"}


def enough(state: Writing) -> str:
    if not state["remark"]:
        return END
    return "write" if state["round"] < ROUNDS else "give_up"


def give_up(state: Writing) -> Writing:
    return {"reply": "", "notes": [f"no draft passed the review: {state['remark']}"]}


def writing():
    graph = StateGraph(Writing)
    graph.add_node("write", write)
    graph.add_node("review", review)
    graph.add_node("give_up", give_up)
    graph.add_edge(START, "write")
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", enough, ["write", "give_up", END])
    graph.add_edge("give_up", END)
    return graph.compile()
