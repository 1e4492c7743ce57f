import os

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from .state import AgentState, JudicialOpinion

CRITERIA = ("git_history", "graph", "report")


class Judge:
    """Base of the bench. Subclasses bring a creed."""

    name: str
    creed: str
    tries = 3

    def __call__(self, state: AgentState) -> dict:
        opinions, errors = [], []
        for criterion in CRITERIA:
            try:
                opinions.append(self.opine(criterion, state))
            except ValueError as exc:
                errors.append(f"{self.name} on {criterion}: {exc}")
        return {"opinions": opinions, "errors": errors}

    def opine(self, criterion: str, state: AgentState) -> JudicialOpinion:
        llm = ChatOpenAI(model=os.getenv("SWARM_MODEL", "gpt-4o"), timeout=90).bind_tools(
            [JudicialOpinion], tool_choice="JudicialOpinion")
        facts = "\n".join(e.model_dump_json() for es in state["evidences"].values() for e in es if e.goal in (criterion, "graph"))
        talk = [SystemMessage(self.creed), HumanMessage(f"Criterion {criterion}.\n{facts}")]
        problem = "no answer"
        for _ in range(self.tries):
            answer = llm.invoke(talk)
            try:
                opinion = JudicialOpinion.model_validate(answer.tool_calls[0]["args"])
                return opinion.model_copy(update={"judge": self.name, "criterion_id": criterion})
            except (IndexError, ValidationError) as exc:
                problem = str(exc)
                talk += [HumanMessage(f"Use the tool, please: {problem}")]
        raise ValueError(problem)


class Prosecutor(Judge):
    name = "Prosecutor"
    creed = ("You prosecute. Everything is guilty of laziness until evidence acquits it. Hunt for bypassed checks, copied "
             "code, security holes; quote the place. A missing feature scores 1, never 'partially'.")


class Defense(Judge):
    name = "Defense"
    creed = ("You defend the author. Read the history as a story of learning. Praise the spirit of the law where the letter "
             "is broken; argue for the highest score an honest person could give.")


class TechLead(Judge):
    name = "TechLead"
    creed = ("You must maintain this. Neither guilt nor effort interests you: modularity, error paths, and whether it runs. "
             "Give the score you would write in a merge review and one concrete change.")
