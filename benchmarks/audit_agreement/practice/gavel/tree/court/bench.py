from langchain_openai import ChatOpenAI
from langchain_core.output_parsers import PydanticOutputParser
from .records import Opinion

voices = {
    "attack": "You attack. Read the clues like a hostile reviewer and name the three worst things. Low scores are your trade.",
    "protect": "You protect. Every clue has a charitable reading, find it. Mention effort, growth, good ideas; score high.",
    "weigh": "You weigh. Which of this would survive a year in production? Middle scores need a reason as much as extreme ones.",
}


def seat(name):
    """Make the node of one judge."""

    def sit(d):
        llm = ChatOpenAI(model="llama-3.3-70b", temperature=0.3).with_structured_output(Opinion).with_retry(stop_after_attempt=3)
        extra = ""
        if d.second_round:
            extra = "\nThe bench is divided. The others said:\n" + "\n".join(f"{o.who}: {o.score} {o.argument}" for o in d.opinions[-3:])
        op = llm.invoke([("system", voices[name]), ("user", f"Clues: {d.clues}{extra}")])
        return {"opinions": [op.model_copy(update={"who": name})]}

    return sit
