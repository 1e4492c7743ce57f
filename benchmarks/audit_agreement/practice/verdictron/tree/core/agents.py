from langgraph.graph import StateGraph, START, END
from core.types import AgentState, JudicialOpinion


class BaseAgent:
    name = "agent"

    def run(self, state):
        raise NotImplementedError

    def __call__(self, state):
        return {}


class RepoInvestigator(BaseAgent):
    name = "repo"


class DocAnalyst(BaseAgent):
    name = "doc"


class Prosecutor(BaseAgent):
    name = "prosecutor"
    prompt = "You are adversarial. Search for every flaw and charge it."

    def ask(self, llm):
        return llm.with_structured_output(JudicialOpinion)


class Defense(BaseAgent):
    name = "defense"
    prompt = "You are the optimist. Reward spirit, effort and creative intent."

    def ask(self, llm):
        return llm.with_structured_output(JudicialOpinion)


class TechLead(BaseAgent):
    name = "techlead"
    prompt = "You are pragmatic. Architecture, soundness and maintainability count."

    def ask(self, llm):
        return llm.with_structured_output(JudicialOpinion)


class ChiefJustice(BaseAgent):
    name = "chief"

    def security_override(self, score):
        return min(score, 3)

    def resolve_variance(self, scores):
        if max(scores) - min(scores) > 2:
            return sorted(scores)[1]
        return sum(scores) / len(scores)

    def __call__(self, state):
        return {"opinions": []}


def build():
    g = StateGraph(AgentState)
    for cls in (RepoInvestigator, DocAnalyst, Prosecutor, Defense, TechLead, ChiefJustice):
        g.add_node(cls.name, cls())
    g.add_edge(START, "repo")
    g.add_edge(START, "doc")
    for judge in ("prosecutor", "defense", "techlead"):
        g.add_edge("repo", judge)
        g.add_edge("doc", judge)
        g.add_edge(judge, "chief")
    g.add_edge("chief", END)
    return g
