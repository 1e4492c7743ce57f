"""Projection: the report of each guest's session, ``guests/<session>.json`` and ``.md`` (docs/guests.md).

A session that is taken up again while it is among those kept goes on in its document; else another part of it begins,
``guests/<session>~2.json`` and so on, and the document that there is stays as it was.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from pmagent.actors.guests.shown import in_short
from pmagent.contracts.content import Growing
from pmagent.contracts.guests import (
    GUESTS,
    GuestAgentStarted,
    GuestAgentStopped,
    GuestApprovalAsked,
    GuestApprovalGiven,
    GuestApprovalRejected,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestCallEnded,
    GuestCallUnseen,
    GuestChanged,
    GuestDefinitionsChanged,
    GuestFact,
    GuestNoted,
    GuestSessionClosed,
    GuestSessionEnded,
    GuestSessionStarted,
)
from pmagent.events.event import Event
from pmagent.projections.core.projection import Part
from pmagent.projections.guests.report import (
    FOLDER,
    LISTED_MAX,
    CallLine,
    Listed,
    Report,
    Subagent,
    json_document,
    markdown,
)

KEPT: Final = 100
"""So many closed sessions stay in the state."""
EARLIER: Final = 20_000
"""So many sessions are known that were let go of."""
KEPT_BYTES: Final = 4 << 20
"""Fewer stay if they have more than this together; the newest always stays."""
IMPORTED: Final = "it was imported: observed, not gated"
"""Why nothing is proven of a session that only its transcript tells of."""

replace = msgspec.structs.replace
sum_of = sum


class Earlier(msgspec.Struct, frozen=True):
    """A session that was let go of: how many ``parts`` its report has, and the position of its first event."""

    parts: int
    since: int


class GuestsView(msgspec.Struct, frozen=True):
    """Sessions by id: those that are open, and the newest ``closed`` ones, in the order of their newest events.
    ``size``: so many bytes of calls the closed ones have together. ``earlier``: the sessions that are among neither,
    the one that was let go of last behind all others."""

    sessions: dict[str, Report] = {}
    closed: dict[str, Report] = {}
    size: int = 0
    earlier: dict[str, Earlier] = {}


def begun_at(state: GuestsView, session: str) -> int:
    """The position from which the log may tell of the session; 1 where that is not known."""
    report = state.sessions.get(session) or state.closed.get(session)
    return report.since or report.first if report is not None else 1


class GuestSessions:
    """The documents as a function of a log prefix."""

    name = "guest_sessions"
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        GuestSessionStarted, GuestSessionEnded, GuestAgentStarted, GuestAgentStopped, GuestCallAsked,
        GuestCallDecided, GuestCallEnded, GuestCallClosed, GuestCallUnseen, GuestChanged, GuestNoted,
        GuestApprovalAsked, GuestApprovalGiven, GuestApprovalRejected, GuestApprovalUsed, GuestSessionClosed,
        GuestDefinitionsChanged,
    ))  # fmt: skip

    def initial(self) -> GuestsView:
        """No session."""
        return GuestsView()

    def evolve(self, state: GuestsView, event: Event, sum: str) -> GuestsView:  # noqa: ARG002 - it shows none
        """The view after ``event``."""
        data = event.data
        if isinstance(data, GuestFact) != (event.kind == "fact") or (
            event.kind == "decision" and event.actor != GUESTS
        ):
            return state
        name = str(getattr(data, "session", "")) or event.correlation
        before = state.sessions.get(name) or state.closed.get(name)
        if before is None:
            if not isinstance(data, GuestSessionStarted | GuestCallAsked | GuestNoted | GuestChanged):
                return state
            known = state.earlier.get(name, Earlier(0, event.position))
            before = Report(
                session=name, began=event.time, first=event.position, since=known.since, part=known.parts + 1
            )  # fmt: skip
        after = _after(before, event)
        if after is before:
            return state
        if after.position != event.position:
            after = replace(after, last=event.time, position=event.position)
        if not after.proof and name not in state.closed:
            return replace(state, sessions={**state.sessions, name: after})
        sessions = {key: one for key, one in state.sessions.items() if key != name}
        closed = {key: one for key, one in state.closed.items() if key != name}
        (closed if after.proof else sessions)[name] = after
        size = sum_of(one.ended.size for one in closed.values())
        return replace(state, sessions=sessions, closed=closed, size=size)

    def retire(self, state: GuestsView) -> GuestsView:
        """Without the oldest of those that are closed."""
        if len(state.closed) <= KEPT and state.size <= KEPT_BYTES:
            return state
        closed, size, earlier = dict(state.closed), state.size, dict(state.earlier)
        while len(closed) > 1 and (len(closed) > KEPT or size > KEPT_BYTES):
            name = next(iter(closed))
            report = closed.pop(name)
            size -= report.ended.size
            earlier.pop(name, None)
            earlier[name] = Earlier(report.part, report.since or report.first)
        for name in list(earlier)[: max(0, len(earlier) - EARLIER)]:
            del earlier[name]
        if len(closed) == len(state.closed):
            return state
        return replace(state, closed=closed, size=size, earlier=earlier)

    def documents(self, state: GuestsView, since: GuestsView | None) -> dict[str, Part]:
        """Of sessions that have changed, both."""
        found: dict[str, Part] = {}
        known = {**since.sessions, **since.closed} if since is not None else {}
        for name, report in (*state.sessions.items(), *state.closed.items()):
            if known.get(name) is not report:
                file = name if report.part == 1 else f"{name}~{report.part}"
                found[f"{FOLDER}/{file}.json"] = Part(json_document, (report,), file)
                found[f"{FOLDER}/{file}.md"] = Part(markdown, (report,), file)
        return found


def _after(report: Report, event: Event) -> Report:
    data = event.data
    match data:
        case GuestCallAsked():
            return _asked(report, event, data)
        case GuestCallDecided():
            return _decided(report, event, data)
        case GuestApprovalAsked():
            return _changed(report, data.approval, needed=data.needed)
        case GuestApprovalGiven(approval=number, operator_id=who):
            return replace(report, approved={**report.approved, number: [*report.approved.get(number, []), who]})
        case GuestApprovalUsed(approval=number, call_asked=position):
            whose = report.approved.get(number, [])
            left = {key: one for key, one in report.approved.items() if key != number}
            return _changed(replace(report, approved=left), position, approval=number, operators=whose)
        case GuestApprovalRejected(approval=number, operator_id=who):
            return _changed(report, number, rejected_by=who)
        case GuestCallEnded(call=call, ok=ok, duration_ms=took):
            if data.started and (by := report.spawning.get(call)):
                report = _started(report, data.started, by)
            found = next((one for one in report.open.values() if one.call == call and call), None)
            return _changed(report, found.position, ok=ok, duration_ms=took) if found is not None else report
        case GuestDefinitionsChanged(changes=changes):
            for one in changes:
                report = _listed(report, event, "changes", f"{one.kind} {one.name} {one.how}: {one.text}", one.path)
            return report
        case GuestCallClosed(call_asked=position, end=end, why=why):
            return _closed(report, position, event.time, end=end, why=why)
        case _:
            return _of_session(report, event)


def _decided(report: Report, event: Event, data: GuestCallDecided) -> Report:
    changed: dict[str, Any] = {
        "answer": data.answer, "rules": data.verdict.rules, "approval": data.approval,
        "reasons": [data.why] if data.why else data.verdict.reasons,
    }  # fmt: skip
    call = report.open.get(data.request)
    passes = data.answer == "allow" or (call is not None and call.mode == "observe")
    gains = data.verdict.gains if passes else []
    labels = sorted({*data.labels, *gains})
    new = [one for one in gains if one not in data.labels] if gains else []
    fields: dict[str, Any] = {
        "labels": labels, data.answer: getattr(report, data.answer) + 1, "last": event.time, "position": event.position,
    }  # fmt: skip
    if call is not None:
        changed["gains"] = new or call.gains
        if call.mode == "enforce" and data.answer == "deny":
            fields["open"], fields["ended"] = _ended(report, replace(call, closed=event.time, end="refused", **changed))
        else:
            fields["open"] = {**report.open, data.request: replace(call, **changed)}
    counted = replace(report, **fields)  # once: a report has many fields
    return _gaining(counted, call.agent, new) if call is not None and new else counted


def _of_session(report: Report, event: Event) -> Report:
    data = event.data
    add = partial(_listed, report, event)
    match data:
        case GuestSessionStarted():
            return replace(
                report, harness=data.harness, mode=data.mode, cwd=data.cwd, version=data.version, model=data.model,
                proof="", source=data.source, wall=data.wall,
            )  # fmt: skip
        case GuestSessionEnded(transcript=transcript) if report.source == "import":
            said = replace(report, transcript=transcript, proof="not_proven", why=[IMPORTED])
            return replace(said, closed=event.time)
        case GuestSessionEnded(source="import"):  # what an import adds to a live session does not end it
            return report
        case GuestSessionEnded(reason=reason, transcript=transcript):
            return replace(report, reason=reason, transcript=transcript)
        case GuestSessionClosed():
            closed = replace(report, proof=data.proof, unseen=data.unseen, unknown=data.unknown, why=data.reasons)
            return replace(closed, closed=event.time)
        case GuestAgentStarted(agent=agent, agent_type=kind, parent=parent):
            return _began(add("agents", f"{kind} {agent}".strip(), parent), event, data)
        case GuestAgentStopped(agent=agent) if agent in report.subagents:
            return _with(report, replace(report.subagents[agent], ended=event.time))
        case GuestCallUnseen(call=call, tool=tool):
            return add("calls_unseen", tool, call)
        case GuestChanged(what=what, path=path, refused=refused):
            return add("changes", f"{what} {path}".strip(), "refused" if refused else "taken")
        case GuestNoted(text=text, by=by):
            return add("notes", text, by)
    return report


def _asked(report: Report, event: Event, asked: GuestCallAsked) -> Report:
    call = CallLine(
        position=event.position, time=asked.seen or event.time, agent=asked.facts.agent, call=asked.call,
        agent_type=asked.facts.agent_type, tool=asked.facts.tool, text=in_short(asked.input), mode=asked.mode,
        source=asked.source, digest=asked.digest, input_sha256=asked.input_sha256, starts=asked.facts.kind == "agent",
    )  # fmt: skip
    if call.starts and call.call and len(report.spawning) < LISTED_MAX:
        report = replace(report, spawning={**report.spawning, call.call: event.position})
    harness, count = report.harness or asked.facts.harness, report.asked + 1
    if asked.source == "import":  # nobody judges it, and its end is not waited for
        ended = report.ended.added(_encoded(replace(call, end="imported")))
        return replace(report, harness=harness, asked=count, ended=ended)
    opened = {**report.open, event.position: call}
    return replace(report, harness=harness, asked=count, open=opened, last=event.time, position=event.position)


def _began(report: Report, event: Event, data: GuestAgentStarted) -> Report:
    """With a subagent: until its harness says which call started it, that is the first one that passes and has started
    none."""
    if len(report.subagents) >= LISTED_MAX or data.agent in report.subagents:
        return report
    taken = {one.call for one in report.subagents.values()}
    passing = (at for at, one in report.open.items() if one.starts and at not in taken and _passes(one))
    return _with(report, Subagent(
        agent=data.agent, agent_type=data.agent_type, call=next(passing, 0), began=event.time, inherits=report.labels,
    ))  # fmt: skip


def _passes(call: CallLine) -> bool:
    return call.mode == "observe" or call.answer == "allow" or bool(call.operators)


def _started(report: Report, agent: str, by: int) -> Report:
    """With what a harness says: this call started that subagent, and no other one did."""
    known = report.subagents.get(agent)
    if known is None:
        if len(report.subagents) >= LISTED_MAX:
            return report
        known = Subagent(agent=agent)
    others = {name: replace(one, call=0) if one.call == by else one for name, one in report.subagents.items()}
    return _with(replace(report, subagents=others), replace(known, call=by))


def _gaining(report: Report, agent: str, labels: list[str]) -> Report:
    """With labels that a call brought, which its subagent brought then."""
    known = report.subagents.get(agent)
    if known is None:
        return report
    return _with(report, replace(known, gains=sorted({*known.gains, *labels})))


def _with(report: Report, one: Subagent) -> Report:
    return replace(report, subagents={**report.subagents, one.agent: one})


def _changed(report: Report, position: int, **fields: Any) -> Report:
    call = report.open.get(position)
    if call is None:
        return report
    return replace(report, open={**report.open, position: replace(call, **fields)})


def _closed(report: Report, position: int, time: str, **fields: Any) -> Report:
    call = report.open.get(position)
    if call is None:
        return report
    left, ended = _ended(report, replace(call, closed=time, **fields))
    return replace(report, open=left, ended=ended)


def _ended(report: Report, call: CallLine) -> tuple[dict[int, CallLine], Growing]:
    """The open calls without this one, and those that have ended with it."""
    left = dict(report.open)
    del left[call.position]
    return left, report.ended.added(_encoded(call))


def _listed(report: Report, event: Event, name: str, text: str, about: str) -> Report:
    """With one more in a list of which only so many are kept."""
    known: list[Listed] = getattr(report, name)
    if len(known) >= LISTED_MAX:
        return replace(report, left_out=report.left_out + 1)
    return replace(report, **{name: [*known, Listed(position=event.position, time=event.time, text=text, about=about)]})


def _encoded(call: CallLine) -> bytes:
    return msgspec.json.encode(call) + b"\n"
