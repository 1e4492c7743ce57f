"""Three reviewers with three interests. Each sees the same facts and answers in the same form."""

from collections.abc import Callable

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from depcheck.state import Review, Reviewer, State

PROMPTS: dict[Reviewer, str] = {
    "sceptic": (
        "You have been burnt by abandoned libraries. Search the facts for the reason why this one will hurt us within "
        "two years: nobody answers, no tests, terms we cannot accept. Give the benefit of the doubt to no one."
    ),
    "advocate": (
        "You believe that building on the work of others is how small teams get anywhere. Point out what is good here, "
        "what effort shows, and which gaps we could close with a patch of our own. Be generous, but invent nothing."
    ),
    "maintainer": (
        "On Monday you will add this to our lock file and carry a pager for it. Weigh what matters then: can it be "
        "tested, upgraded and replaced? Say plainly whether you would merge the change."
    ),
}
TRIES = 3


class NoReview(Exception):
    """The model gave no answer that fits."""


def reviewer(name: Reviewer, model: BaseChatModel) -> Callable[[State], dict]:
    """The node of one reviewer."""
    bound = model.with_structured_output(Review)

    def review(state: State) -> dict:
        facts = "\n".join(f"- {fact.inspector}: {fact.text} ({fact.path})" for fact in state["facts"])
        asked = [("system", PROMPTS[name]), ("human", f"Facts about {state['url']}:\n{facts}\nScore it from 1 to 5.")]
        for _ in range(TRIES):
            try:
                answer = bound.invoke(asked)
            except ValidationError:
                continue
            if isinstance(answer, Review) and answer.reviewer == name:
                return {"reviews": {name: answer}}
        raise NoReview(f"the {name} gave no review that fits in {TRIES} tries")

    return review
