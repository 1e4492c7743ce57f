"""The operations on guests: what waits for operators, their answers, and notes (docs/guests.md).

They are asked for over the daemon's own socket. The guest socket, to which agents' hooks have access, knows none of
them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.actors.core.engine import Engine
from pmagent.actors.guests.shown import in_short, readable
from pmagent.actors.guests.state import Approval, GuestsState
from pmagent.contracts.control import OperatorId, Why
from pmagent.contracts.guest_calls import Rule
from pmagent.contracts.guests import (
    GUESTS,
    RULE_USES_MAX,
    TEXT_CHARS_MAX,
    GuestAnswerRequested,
    GuestCallAsked,
    GuestCallDecided,
    GuestNoted,
    SessionId,
    Sha256,
)
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import Event, time_after
from pmagent.guests.gate import Gate
from pmagent.pla.proving import proof
from pmagent.projections.guests.report import Report, calls_of, json_document, markdown, waiting
from pmagent.projections.guests.sessions import GuestSessions, GuestsView
from pmagent.service.answer import Answer, request_of, understood
from pmagent.service.folding import folded
from pmagent.service.host import Host, asker
from pmagent.service.io import read_event
from pmagent.workspace.layout import Layout

ANSWER: Final = "guests.answer"
NOTE: Final = "guests.note"
_ANSWERS: Final = frozenset(("guest.approval_given", "guest.approval_rejected", "guest.answer_refused"))
_REACTION: Final = 8
"""A call's verdict stands within so many events behind it."""


class BadGuests(PmagentError, exit_code=2):
    """The arguments make no request; nothing was recorded."""


class NoSuchSession(PmagentError, exit_code=1):
    """The session is not among those that are remembered."""


class NothingWaits(PmagentError, exit_code=1):
    """No approval has this number."""


class _Listing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    approval: Annotated[int, Meta(ge=0)] = 0


class _Sessions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    session: Annotated[str, Meta(max_length=100)] = ""
    text: bool = False


class _Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``rule``: a rule's text, which then allows such calls in the session for ``rule_seconds``, and so many of them
    (``rule_uses``; 0: any number)."""

    approval: Annotated[int, Meta(ge=1)]
    decision: Literal["approve", "reject"]
    digest: Sha256
    operator: OperatorId
    channel: Literal["cli", "console", "api"] = "api"
    note: Why = ""
    rule: Annotated[str, Meta(max_length=1000)] = ""
    rule_seconds: Annotated[float, Meta(gt=0, le=7 * 24 * 3600)] = 3600.0
    rule_uses: Annotated[int, Meta(ge=0, le=RULE_USES_MAX)] = 0
    secret: Annotated[str, Meta(max_length=1024)] = ""
    by_secret: bool = False


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    session: SessionId = "notes"
    text: Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]
    operator: OperatorId


_understood: Final = partial(
    understood, refused=BadGuests, what="this cannot be asked for", hint="pmagent approvals --help"
)


def state_of(engine: Engine) -> GuestsState:
    """The state of the guests' actor."""
    state: GuestsState = engine.states[GUESTS]
    return state


def status(engine: Engine) -> dict[str, Any]:
    """Its part of the status: open sessions, calls that wait, and approvals that were not used yet."""
    state = state_of(engine)
    waiting = sum(not one.given for one in state.approvals.values())
    problems = [layer.problem for layer in state.policy.layers if layer.problem]
    known = bool(state.policy.digest)
    return {
        "guests": {
            "sessions": len(state.sessions), "waiting": waiting, "unused": len(state.approvals) - waiting,
            "policy": state.policy.digest, "problems": problems if known else [],
        }
    }  # fmt: skip


async def written(host: Host, _: dict[str, Any]) -> Answer:
    """Return when the reports on disk show everything that is durable now."""
    await host.flush()
    host.require_current(GuestSessions.name)
    return Answer(document={})


def written_alone(_workspace: Path, _name: str, _arguments: dict[str, Any]) -> Answer:
    """Where no daemon runs, the last one has written all reports."""
    return Answer(document={})


# --- what waits -----------------------------------------------------------------------------------------------------


async def approvals(host: Host, arguments: dict[str, Any]) -> Answer:
    """Calls that wait for operators, and approvals not used yet; or one of these, whole. Raises NothingWaits."""
    asked = _understood(arguments, _Listing)
    kept, intake = state_of(host.runtime.engine).approvals, host.runtime.intake
    await host.runtime.caught_up()  # these approvals are in the log then; later ones may not be
    return await anyio.to_thread.run_sync(
        _listed, kept, asked.approval, partial(read_event, host.layout.store), intake.blob
    )


def approvals_alone(workspace: Path, _name: str, arguments: dict[str, Any]) -> Answer:
    """``approvals`` of the workspace's log. Raises CorruptLog, HistoryError, NothingWaits."""
    asked = _understood(arguments, _Listing)
    store = Layout(workspace).store
    with folded(workspace) as (engine, _, _):
        kept = state_of(engine).approvals
        return _listed(kept, asked.approval, partial(read_event, store), lambda sha256: store.blobs().get(sha256))


def _listed(
    kept: Mapping[int, Approval], number: int, event: Callable[[int], Event], blob: Callable[[str], bytes]
) -> Answer:
    if number and number not in kept:
        what = f"nothing waits under the number {number}: it was answered, used, or has expired, or there was none"
        raise NothingWaits(what, "pmagent approvals lists what waits")
    chosen = {number: kept[number]} if number else kept
    items = [_item(at, one, event, blob, whole=bool(number)) for at, one in chosen.items()]
    return Answer(document=items[0] if number else {"approvals": items})


def _item(
    number: int, approval: Approval, event: Callable[[int], Event], blob: Callable[[str], bytes], *, whole: bool
) -> dict[str, Any]:
    fact = event(number)
    asked = fact.data
    assert isinstance(asked, GuestCallAsked), "approvals are numbered by calls"
    given = asked.input if not asked.input_kept else msgspec.json.decode(blob(asked.input_sha256))
    decided = _decided(number, event)
    found: dict[str, Any] = {
        "approval": number, "session": approval.session, "harness": asked.facts.harness, "agent": approval.agent,
        "tool": approval.tool, "text": in_short(given), "asked": fact.time, "digest": approval.digest,
        "needed": approval.needed, "operators": approval.operators, "given": approval.given,
        "expires": approval.expires, "reasons": decided.verdict.reasons if decided is not None else [],
        "rules": decided.verdict.rules if decided is not None else [],
    }  # fmt: skip
    if whole:
        found |= {
            "lines": readable(given), "input": given, "facts": msgspec.to_builtins(asked.facts), "call": asked.call,
            "resume": f"claude -p --resume {approval.session}" if approval.deferred else "",
            "cwd": asked.facts.cwd, "mend": decided.verdict.mend if decided is not None else [],
        }  # fmt: skip
    return found


def _decided(number: int, event: Callable[[int], Event]) -> GuestCallDecided | None:
    for position in range(number + 1, number + _REACTION):
        try:
            data = event(position).data
        except NotFound:
            return None
        if isinstance(data, GuestCallDecided) and data.request == number:
            return data
    return None


# --- sessions and policy ----------------------------------------------------------------------------------------------


async def sessions(host: Host, arguments: dict[str, Any]) -> Answer:
    """Every session that is open, and the newest closed ones; or one of them, whole, with ``text`` as ``{text}``, for
    people. Raises NoSuchSession, ProjectionHalted."""
    asked = _understood(arguments, _Sessions)
    host.require_current(GuestSessions.name)
    kept = _kept(host)
    if not asked.session:
        found = [_in_list(one) for one in reversed(kept.values()) if one.harness or one.asked]
        return Answer(document={"sessions": sorted(found, key=lambda one: (not one["waiting"], bool(one["proof"])))})
    report = kept.get(asked.session)
    if report is None:
        raise NoSuchSession(
            "this session is not among the newest", f"pmagent log tail --session {asked.session} tells of it"
        )
    if asked.text:
        return Answer(document={"text": (await anyio.to_thread.run_sync(markdown, report)).decode()})
    return Answer(document=msgspec.json.decode(await anyio.to_thread.run_sync(json_document, report)))


def _kept(host: Host) -> dict[str, Report]:
    """The newest closed sessions, and behind them all that are open."""
    view: GuestsView = host.documents.state(GuestSessions.name)
    return {**view.closed, **view.sessions}


def _in_list(report: Report) -> dict[str, Any]:
    named = (
        "session", "began", "last", "harness", "mode", "wall", "cwd", "proof", "unseen", "unknown", "asked", "allow",
        "ask", "deny", "labels",
    )  # fmt: skip
    return {**{name: getattr(report, name) for name in named}, "waiting": waiting(report)}


async def policy(host: Host, arguments: dict[str, Any]) -> Answer:
    """The policy as it was read last, and how often each rule decided in the sessions that ``sessions`` lists."""
    _understood(arguments, _Nothing)
    host.require_current(GuestSessions.name)
    counts = await anyio.to_thread.run_sync(_counted, list(_kept(host).values()))
    found = state_of(host.runtime.engine).policy
    layers = [
        {**msgspec.to_builtins(layer), "rules": [_ruled(rule, counts) for rule in layer.rules]}
        for layer in found.layers
    ]
    return Answer(document={"digest": found.digest, "layers": layers, "calls": counts.total()})


def _counted(reports: list[Report]) -> Counter[str]:
    return Counter(rule for report in reports for call in calls_of(report) for rule in call.rules)


def _ruled(rule: Rule, counts: Counter[str]) -> dict[str, Any]:
    return {**msgspec.to_builtins(rule), "decided": counts[rule.id]}


# --- answers --------------------------------------------------------------------------------------------------------


async def answer(host: Host, arguments: dict[str, Any]) -> Answer:
    """Approve or reject: ``{answered: true, approval, …}``, or the refusal's reasons and exit code 1. Raises BadGuests,
    BadPolicy, BadOperation, NotProven, Refused, TimedOut."""
    from pmagent.guests.policy import session_rule  # with its reader of YAML

    asked = _understood(arguments, _Answer)
    known = await proof(host, asked.operator, asked.channel, asked.secret, by_secret=asked.by_secret)
    rule = None
    if asked.rule:
        expires = time_after(host.runtime.now(), asked.rule_seconds)
        reason = f"{asked.operator} allowed it with request {asked.approval}"
        rule = session_rule(asked.rule, asked.approval, os.environ.get("HOME", ""), expires, reason)
    payload = GuestAnswerRequested(
        approval=asked.approval, decision=asked.decision, digest=asked.digest, operator_id=asked.operator,
        channel=asked.channel, note=asked.note, proof=known, rule=rule, rule_uses=asked.rule_uses if rule else 0,
        asking=await anyio.to_thread.run_sync(host.resources[Gate].processes.session_of, asker.get()),
    )  # fmt: skip
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, ANSWER))
    event = await host.ask_draft(draft, _ANSWERS, whole=True, but=("rule",), shown=False)
    done = event.type != "guest.answer_refused"
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"answered": done, **fields, "position": event.position}, exit_code=0 if done else 1)


async def note(host: Host, arguments: dict[str, Any]) -> Answer:
    """Note a text in a session. Raises BadGuests, BadOperation."""
    asked = _understood(arguments, _Note)
    request = request_of(arguments, NOTE)
    payload = GuestNoted(session=asked.session, text=asked.text, by=asked.operator)
    intake = host.runtime.intake
    draft = await anyio.to_thread.run_sync(intake.fact, payload, request, "operator", asked.session)
    position = await host.tell_draft(draft)
    return Answer(document={"noted": True, "session": asked.session, "position": position})
