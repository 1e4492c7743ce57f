"""Laws of questions to models and of the calls for them, computed from the events themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.model import ModelAsked, ModelCallRequested, ModelFailed, ModelReplied
from pmagent.events.event import Event, parse_time
from pmagent.replay.simulation.world import require


class Question:
    """A question, the calls made for it, and its ends so far."""

    def __init__(self, event: Event, deadline: datetime) -> None:
        self.event = event
        self.asked: ModelAsked = event.data
        self.deadline = deadline
        self.calls: list[Event] = []
        self.replied = 0
        self.failed = 0

    @property
    def where(self) -> str:
        """How a violation names it."""
        return f"question {self.event.position}"


class Spent:
    """The use of one run's questions: calls, open calls, and the tokens and costs that replies report."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.calls = 0
        self.open: set[int] = set()
        self.tokens = 0
        self.cost_usd = 0.0


def check_models(history: Sequence[Event]) -> dict[int, Question]:
    """Calls keep to the limits of question and run, and no question has two ends. Holds for any prefix of a history.
    Gives each question by its position. Raises Violation."""
    questions: dict[int, Question] = {}
    runs: dict[str, Spent] = {}
    of_call: dict[int, Question] = {}
    for event in history:
        data = event.data
        over = data.request if isinstance(data, EffectRefused) else event.causation if event.kind == "fact" else 0
        if over in of_call:
            runs[_run(of_call[over])].open.discard(over)
        match data:
            case ModelAsked():
                run = event.correlation or f"position {event.position}"
                spent = runs.setdefault(run, Spent(parse_time(event.time)))
                deadline = spent.since + timedelta(seconds=data.limits.seconds)
                questions[event.position] = Question(event, deadline)
            case ModelCallRequested():
                question = questions[data.ask]
                _call(question, runs[_run(question)], event, history[event.causation - 1])
                of_call[event.position] = question
            case ModelReplied() if event.kind == "fact":
                _reply(questions[data.ask], runs[_run(questions[data.ask])], event, data)
            case ModelFailed():
                _failure(questions[data.ask], event, data)
    return questions


def check_models_ended(history: Sequence[Event]) -> None:
    """After everything came to rest each question has its end. Raises Violation."""
    for question in check_models(history).values():
        require(bool(question.replied or question.failed), f"{question.where} has no end")


def _run(question: Question) -> str:
    return question.event.correlation or f"position {question.event.position}"


def _call(question: Question, spent: Spent, event: Event, decided_on: Event) -> None:
    """A call that was decided on because of ``decided_on``: whose time counts, for a decision that a crash cut off is
    made, on the same event, by the next process."""
    data: ModelCallRequested = event.data
    asked, limits = question.asked, question.asked.limits
    where = f"call {event.position} for {question.where}"
    require((data.model, data.action) == (asked.model, asked.action), f"{where}: another model or action")
    require(not question.replied and not question.failed, f"{where}: the question has its end")
    require(len(question.calls) < limits.attempts, f"{where}: attempt beyond {limits.attempts}")
    require(data.attempt == len(question.calls) + 1, f"{where}: called attempt {data.attempt}")
    require(spent.calls < limits.calls, f"{where}: the run has made its {limits.calls} calls")
    require(len(spent.open) < limits.concurrency, f"{where}: {len(spent.open)} calls of the run are open already")
    require(spent.tokens < limits.tokens, f"{where}: the run has used {spent.tokens} tokens of {limits.tokens}")
    if limits.cost_usd is not None:
        require(asked.price is not None, f"{where}: the cost is limited and no price known")
        require(spent.cost_usd <= limits.cost_usd, f"{where}: the run has cost {spent.cost_usd} of {limits.cost_usd}")
    left = (question.deadline - parse_time(decided_on.time)).total_seconds()
    require(0 < data.seconds <= min(limits.call_seconds, left), f"{where}: {data.seconds} s, {left} s are left")
    question.calls.append(event)
    spent.calls += 1
    spent.open.add(event.position)


def _reply(question: Question, spent: Spent, event: Event, data: ModelReplied) -> None:
    require(event.causation in [call.position for call in question.calls], f"{question.where}: reply to no call of it")
    require(not question.replied, f"{question.where} has two replies, {question.replied} and {event.position}")
    question.replied = event.position
    used, price = data.usage, question.asked.price
    spent.tokens += used.input_tokens + used.output_tokens
    if price is not None:
        spent.cost_usd += (used.input_tokens * price.input_usd + used.output_tokens * price.output_usd) / 1_000_000


def _failure(question: Question, event: Event, data: ModelFailed) -> None:
    require(not question.failed, f"{question.where} has two ends, {question.failed} and {event.position}")
    require(not question.replied, f"{question.where} has two ends, {question.replied} and {event.position}")
    require(data.attempts == len(question.calls), f"{question.where}: {data.attempts} attempts told")
    question.failed = event.position
