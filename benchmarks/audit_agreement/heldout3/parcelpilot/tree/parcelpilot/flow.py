"""The work on one exception, as a LangGraph entrypoint. Each task's result is kept, so nothing is done twice."""
from __future__ import annotations

from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy, interrupt

from . import gateway
from .model import Answer, ParcelException, Reading, Result, Step
from .reading import read_note
from .rules import decide

AGAIN = RetryPolicy(max_attempts=3, retry_on=gateway.GatewayError)


@task(retry_policy=AGAIN)
def load(identity: str) -> dict:
    return gateway.fetch(identity).model_dump()


@task
def understand(note: str) -> dict:
    return read_note(note).model_dump(mode="json")


@task(retry_policy=AGAIN)
def carry_out(step: dict, exception: dict) -> str:
    todo, case = Step.model_validate(step), ParcelException.model_validate(exception)
    if todo.action == "ask_address":
        gateway.ask_customer(case)
        return f"asked {case.email} for a better address"
    gateway.act(todo.action, case, todo.reason)
    return f"{todo.action} for parcel {case.parcel}: {todo.reason}"


def pilot(checkpointer):
    @entrypoint(checkpointer=checkpointer)
    def work(identity: str) -> dict:
        try:
            case = load(identity).result()
        except gateway.GatewayError as error:
            return Result(exception=identity, action="none", done=False, told=str(error)).model_dump()
        exception = ParcelException.model_validate(case)
        reading = Reading.model_validate(understand(exception.carrier_text).result())
        step = decide(exception, reading)
        if step.needs_yes:
            answer = Answer.model_validate(interrupt({
                "exception": exception.id, "action": step.action, "reason": step.reason, "value": exception.value,
            }))
            if not answer.yes:
                step = Step(action="hand_over", reason=f"{answer.by} said no. {answer.note}".strip(), needs_yes=False)
        try:
            told = carry_out(step.model_dump(), case).result()
        except gateway.GatewayError as error:
            return Result(exception=identity, action=step.action, done=False, told=str(error)).model_dump()
        return Result(exception=identity, action=step.action, done=True, told=told).model_dump()

    return work
