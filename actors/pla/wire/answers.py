"""The shapes of what a device says, and whether a line has the one that is due (docs/hid-protocol.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from pmagent.actors.pla.wire.messages import Broken, Check, Count, Ended, Name, Op, Refused
from pmagent.contracts.hid import ExecutionState


class HelloAnswer(msgspec.Struct, frozen=True):
    """To ``hello``: the hello document, which fits its contract."""

    hello: dict[str, Any]


class KnownExecution(msgspec.Struct, frozen=True):
    """The device's knowledge of an execution."""

    execution_id: Name
    state: ExecutionState
    digest: Name = ""
    done: Count = 0
    of: Count = 0
    code: Name = ""


class StatusAnswer(msgspec.Struct, frozen=True):
    """To ``status`` and ``ping``: the device's status, which fits its contract, and the execution that was asked
    for."""

    status: dict[str, Any]
    execution: KnownExecution | None = None


class ArmAnswer(msgspec.Struct, frozen=True):
    """To ``arm``."""

    armed: Literal[True]
    lease_ms: Count


class DisarmAnswer(msgspec.Struct, frozen=True):
    """To ``disarm``."""

    armed: Literal[False]


class PrepareAnswer(msgspec.Struct, frozen=True):
    """To ``prepare``: parts so far; with the last one the state, the digest that the device computed, and the number of
    reports."""

    have: Count
    state: Literal["", "PREPARED"] = ""
    digest: Name = ""
    of: Count = 0


class CommitAnswer(msgspec.Struct, frozen=True):
    """To ``commit``."""

    state: Literal["RUNNING", "DONE", "ABORTED"]
    done: Count
    of: Count


class _Refusal(msgspec.Struct, frozen=True):
    error: Name
    text: Annotated[str, Meta(max_length=1900)] = ""


_ANSWERS: Final[dict[Op, type[msgspec.Struct]]] = {
    "hello": HelloAnswer,
    "status": StatusAnswer,
    "ping": StatusAnswer,
    "arm": ArmAnswer,
    "disarm": DisarmAnswer,
    "prepare": PrepareAnswer,
    "commit": CommitAnswer,
}


def answer_of(op: Op, line: dict[str, Any], check: Check) -> msgspec.Struct | Refused | Broken:
    """The answer in ``line`` to a request ``op``; the documents within it are held against their contracts."""
    accepted = line.get("ok")
    try:
        if accepted is False:
            refusal = msgspec.convert(line, _Refusal)
            return Refused(refusal.error, refusal.text)
        if accepted is not True:
            return Broken("answer", "schema_validation", "/ok", "ok is neither true nor false")
        answer = msgspec.convert(line, _ANSWERS[op])
    except msgspec.ValidationError:
        return Broken("answer", "schema_validation", "", f"this is no answer to {op}")
    if isinstance(answer, HelloAnswer):
        return broken("hello", answer.hello, check) or answer
    if isinstance(answer, StatusAnswer):
        return broken("device_status", answer.status, check) or _miscounted("answer", answer.execution) or answer
    return _miscounted("answer", answer if isinstance(answer, CommitAnswer) else None) or answer


def ended_of(line: dict[str, Any]) -> Ended | Broken:
    """The content of an unasked ``ended`` line."""
    try:
        ended = msgspec.convert(line, Ended)
    except msgspec.ValidationError:
        return Broken("ended", "schema_validation", "", "this is no end of an execution")
    return _miscounted("ended", ended) or ended


def _miscounted(contract: str, reported: CommitAnswer | KnownExecution | Ended | None) -> Broken | None:
    """A DONE execution was handed over whole, and none beyond its length."""
    if reported is None or reported.done == reported.of or (reported.done < reported.of and reported.state != "DONE"):
        return None
    return Broken(contract, "schema_validation", "/done", f"{reported.state} does not go with these counts")


def broken(contract: str, document: dict[str, Any], check: Check) -> Broken | None:
    """The first problem of a document with its contract."""
    for problem in check(contract, document):
        return Broken(contract, problem.kind, problem.pointer, problem.text)
    return None
