import os

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.func import task
from langgraph.types import RetryPolicy
from pydantic import ValidationError

from .schemas import Ballot, Exhibit, Role, Vote

CREED = {
    Role.PROSECUTOR: "Trust nothing. An exhibit that is missing is an admission. What would an attacker or a careless "
                     "maintainer do with this? Give 1 unless shown otherwise.",
    Role.DEFENDER: "Be generous. Credit the idea, the learning visible in the log, and what the limits of time explain. "
                   "Deduct only for what is proven.",
    Role.ENGINEER: "You only care whether it works and can be kept working: error paths, tests, coupling. No credit for "
                   "intentions, no blame for taste.",
}


def _chain():
    llm = ChatOpenAI(model=os.getenv("TRIBUNAL_MODEL", "gpt-4o"), temperature=0.2, max_retries=2, timeout=90)
    prompt = ChatPromptTemplate.from_messages([("system", "{creed}"), ("human", "Criterion: {criterion}\n\n{exhibits}")])
    return prompt | llm.with_structured_output(Vote)


@task(retry_policy=RetryPolicy(max_attempts=3, retry_on=(ValidationError, ValueError), initial_interval=0.1))
def hear(role: Role, criterion: str, exhibits: list[Exhibit]) -> Ballot:
    text = "\n\n".join(f"<{e.name}>\n{e.text}\n</{e.name}>" for e in exhibits)
    vote = _chain().invoke({"creed": CREED[role], "criterion": criterion, "exhibits": text})
    if vote is None:
        raise ValueError("the model did not call the schema")
    return Ballot(role, criterion, Vote.model_validate(vote))
