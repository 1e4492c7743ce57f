"""A bench of judges behind a provider's HTTP API: each question gets an opinion that follows from it alone."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pmagent.contracts.audit import JUDGES
from tests.support.provider import Answer, Provider, completion, provider

SCORES = {"Prosecutor": 2, "Defense": 4, "TechLead": 3}


class Question(NamedTuple):
    """The judge, the criterion and the round of a request."""

    judge: str
    criterion: str
    round: int


class Bench:
    """``scores``: what is given instead of ``SCORES``. ``first``: by question, what is sent first, in order, before
    opinions that fit. ``holds``: such questions get no answer. Several threads ask."""

    def __init__(
        self, scores: Mapping[Question, int] | None = None, first: Mapping[Question, list[Answer]] | None = None,
        holds: Callable[[Question], bool] = lambda _: False,
    ) -> None:
        self.scores = dict(scores or {})
        self.first = {question: list(given) for question, given in (first or {}).items()}
        self.holds = holds
        self.asked: Counter[Question] = Counter()
        self.pictures = 0
        """So many images were shown."""
        self.held = threading.Event()
        """Set when a question has got no answer."""
        self._guard = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> Answer:
        """The answer to a request."""
        if any(isinstance(message["content"], list) for message in request["messages"]):
            with self._guard:
                self.pictures += 1
            return completion("A flow of boxes: fetch leads to three parts side by side, which are joined by gather.")
        question = question_of(request)
        with self._guard:
            self.asked[question] += 1
            if given := self.first.get(question):
                return given.pop(0)
        if self.holds(question):
            self.held.set()
            return Answer(hang=True)
        return opinion(question, self.scores.get(question))


def question_of(request: Mapping[str, Any]) -> Question:
    """The question of a request: the answer's shape in the system's message says whom, the first document the rest."""
    said = {role: [one["content"] for one in request["messages"] if one["role"] == role] for role in ("system", "user")}
    document = json.loads(said["user"][0])
    judge = next(name for name in JUDGES if f'"judge": "{name}"' in said["system"][0])
    return Question(judge, document["criterion"]["id"], 2 if "second_round" in document else 1)


def opinion(question: Question, score: int | None = None, **changed: Any) -> Answer:
    """A completion with an opinion that fits, but for what is ``changed``."""
    given = {
        "judge": question.judge, "criterion_id": question.criterion,
        "score": SCORES[question.judge] if score is None else score,
        "argument": f"The evidence says so ({question.criterion}#1).", "cited_evidence": [f"{question.criterion}#1"],
        **changed,
    }
    call = {"name": "JudicialOpinion", "arguments": json.dumps(given)}
    return completion(None, finish="tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": call}])


@contextmanager
def sitting(bench: Bench) -> Iterator[dict[str, str]]:
    """The bench behind a server, while the block lasts; the environment in which its client finds it."""
    with provider(by=bench) as server:
        yield environment(server)


def environment(server: Provider) -> dict[str, str]:
    """The environment of a process that asks this server as ``openai:…``, and nobody else."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {"OPENAI_API_KEY": "test-key-of-nobody", "OPENAI_API_BASE": server.url, **dict.fromkeys(proxies, "")}
