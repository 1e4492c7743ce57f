"""The operations on the PLA: modes, proposals, decisions, arming; each is a request in the log, and its answer
(docs/design.md §11.2, §16).

The command line asks by them, and the console: approval is events and commands, not screen code. A refusal is
an answer too: exit code 1, with reasons and what would mend them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.actors.model.models import Models
from pmagent.actors.pla.goals import parse_goal
from pmagent.actors.pla.line.holding import Line
from pmagent.actors.pla.warden.state import ProposalView
from pmagent.clean import is_seen
from pmagent.contracts.control import Channel
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla_events import (
    PlaArmRequested,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaModeRequested,
    PlaObserveRequested,
    PlaProposalRequested,
    PlaProposed,
    PlaRevealed,
)
from pmagent.events.event import Draft, Event
from pmagent.events.log import LogClock, now
from pmagent.pla import foreign_documents, reading
from pmagent.pla.arguments import (
    ANSWER_SECONDS,
    FRAME_SECONDS,
    OBSERVED_SECONDS,
    WAY_SECONDS,
    BadPla,
    DecideArguments,
    ListArguments,
    ModeArguments,
    ObserveArguments,
    OperatorArguments,
    OutcomeArguments,
    ProposeArguments,
    ShowArguments,
    StatusArguments,
    understood,
)
from pmagent.pla.proving import proof
from pmagent.pla.requests import BadProposal, Made, ProposalRequest, made
from pmagent.pla.settings import frame_source, standing
from pmagent.pla.vault import Vault
from pmagent.service.answer import Answer, OutcomeOpen
from pmagent.service.client import new_request
from pmagent.service.folding import folded
from pmagent.service.host import Host
from pmagent.workspace.settings import PlaSettings

_OF_THE_MOMENT: Final = (
    "looked_ms", "reason", "acknowledged", "seen_mode", "proof", "layout", "machine", "two_persons",
)  # fmt: skip
"""Fields that may differ when the same decision (same operator, same bytes) is sent again."""


async def mode(host: Host, arguments: dict[str, Any]) -> Answer:
    """Change the mode: ``{accepted, mode, session_id, reasons, mend, withdrawn}``, of which the last names the
    proposals that went with it; exit code 1 when it is not the one asked for.

    Raises BadPla, Refused, TimedOut.
    """
    asked = understood(arguments, ModeArguments)
    with anyio.move_on_after(OBSERVED_SECONDS):  # the warden refuses to go up while nobody knows the kernel's mode
        await host.ready()
    requested = PlaModeRequested(
        mode=asked.mode, operator_id=asked.operator, channel=asked.channel, reason=asked.reason,
        action_class=asked.action_class,
    )  # fmt: skip
    return await _lowering(host, requested, arguments)


def lowers_mode(host: Host, arguments: Mapping[str, Any]) -> bool:
    """Whether the mode that is asked for is lower than the one that there is."""
    wanted = arguments.get("mode")
    return wanted == "OBSERVE" or (wanted == "SUGGEST" and reading.warden(host.runtime.engine).mode == "EXECUTE")


async def end(host: Host, arguments: dict[str, Any]) -> Answer:
    """End the session: as ``mode``."""
    asked = understood(arguments, OperatorArguments)
    return await _lowering(host, PlaEndRequested(operator_id=asked.operator, channel=asked.channel), arguments)


async def _lowering(host: Host, requested: PlaModeRequested | PlaEndRequested, arguments: dict[str, Any]) -> Answer:
    open_ones = reading.open_names(host.runtime.engine)
    answer = _answer(await _ask(host, requested, arguments, {"pla.mode_answered"}, shown=False))
    answer.document["withdrawn"] = reading.withdrawn(host.runtime.engine, open_ones)
    return answer


async def end_adopted(host: Host, operator: str) -> None:
    """End the session of a log that is adopted, if there is one."""
    if reading.warden(host.runtime.engine).session_id:
        await end(host, {"request": new_request("pla.end"), "operator": operator, "channel": "cli"})


async def observe(host: Host, arguments: dict[str, Any]) -> Answer:
    """Look at the newest frame: ``{session_id, frame, reasons, mend, observed}``; exit code 1 without one.

    Raises BadPla, BadFrames, Refused, TimedOut.
    """
    asked = understood(arguments, ObserveArguments)
    settings = await anyio.to_thread.run_sync(standing, host.layout.workspace)
    source = frame_source(asked.frames, settings, host.layout.workspace)
    requested = PlaObserveRequested(frame=source, requested_by=asked.operator, channel=asked.channel)
    event = await _ask(host, requested, arguments, {"pla.observed"}, FRAME_SECONDS, whole=False)
    document = {**_fields(event), "observed": _observed(host, event.data.frame)}
    return Answer(document=document, exit_code=0 if event.data.frame else 1)


async def propose(host: Host, arguments: dict[str, Any]) -> Answer:
    """Propose: ``{proposed: true, proposal_id, digest, …}``, or the refusal's reasons and exit code 1; of a document
    that is none, the violation and exit code 1.

    Raises BadPla, BadProposal, GoalError, BadFrames, VaultFull, Refused, TimedOut.
    """
    asked = understood(arguments, ProposeArguments)
    settings = await anyio.to_thread.run_sync(standing, host.layout.workspace)
    channel: Channel = asked.channel
    proved = await proof(host, asked.operator, channel, asked.secret, by_secret=asked.by_secret)
    if asked.document is None:
        wish = _wish(host, asked, settings)
    else:
        border = foreign_documents.proposal(
            asked.document, reading.warden(host.runtime.engine).mode, settings.layout
        )
        if isinstance(border, foreign_documents.Broken):
            return await _broken(host, border, arguments, asked.channel)
        channel = "document"
        wish = ProposalRequest(
            goal=f"document {border.proposal_id}", operator=asked.operator, channel=channel, why=border.rationale,
            action=border.action, declared=border.declared,
        )  # fmt: skip
    device = reading.warden(host.runtime.engine).device
    wish = msgspec.structs.replace(wish, proof=proved, undeclared=device is None or device.undeclared)
    request = _request(arguments)
    ready = made(wish, settings, host.runtime.intake.masked)
    draft = await anyio.to_thread.run_sync(_drafted, host, ready, request)
    secret = ready.secret
    if secret is not None and host.runtime.engine.sequencer.seen(request) is None:
        host.resources[Vault].put(draft.data.digest, secret, settings.proposal_seconds)
    event = await host.ask_draft(draft, {"pla.proposed", "pla.proposal_refused"}, _proposal_seconds(draft.data))
    if isinstance(event.data, PlaProposed):
        view = reading.called(host.runtime.engine, event.data.proposal_id)
        document = {"proposed": True, **reading.proposal_document(view, host.runtime.now())}
        return Answer(document=document, warnings=_held_here(host, secret))
    if secret is not None:
        host.resources[Vault].drop(draft.data.digest)
    return Answer(document={"proposed": False, **_fields(event)}, exit_code=1)


async def decide(host: Host, arguments: dict[str, Any]) -> Answer:
    """Approve or reject: ``{approved|rejected: true, executes, …}`` as soon as it is recorded, or the refusal's
    reasons, its code, and exit code 1; of a document that is none, the violation and exit code 1.

    Raises BadPla, NoSuchProposal, ConfigError, NotAccepted, Refused, TimedOut.
    """
    asked = understood(arguments, DecideArguments)
    if asked.document is not None:
        border = foreign_documents.decision(asked.document, now())
        if isinstance(border, foreign_documents.Broken):
            return await _broken(host, border, arguments, asked.channel)
        if asked.decision is not None and border.decision != asked.decision:
            what = f"the document says {border.decision}"
            raise BadPla(what, f"hand it to pmagent pla {'approve' if border.decision == 'APPROVED' else 'reject'}")
        requested = _completed(host, border)
    elif asked.decision is None or not asked.proposal_id:
        raise BadPla("a decision needs a proposal's id and what is decided", "pmagent pla approve ID, or reject ID")
    else:
        view = reading.called(host.runtime.engine, asked.proposal_id)
        requested = PlaDecisionRequested(
            proposal_id=view.proposed.proposal_id, decision=asked.decision, digest=asked.digest,
            operator_id=asked.operator, channel=asked.channel, reason=asked.reason, acknowledged=asked.acknowledged,
            seen_mode=asked.seen_mode, looked_ms=asked.looked_ms,
        )  # fmt: skip
        requested = _completed(host, requested)
    by_secret = asked.by_secret and asked.document is None
    proved = await proof(host, requested.operator_id, asked.channel, asked.secret, by_secret=by_secret)
    requested = msgspec.structs.replace(requested, proof=proved)
    if requested.decision == "APPROVED":
        settings = await anyio.to_thread.run_sync(standing, host.layout.workspace)
        requested = msgspec.structs.replace(
            requested, layout=settings.layout, machine=settings.name, two_persons=settings.two_persons
        )
    if requested.decision == "REJECTED" and not is_seen(requested.reason):
        requested = msgspec.structs.replace(requested, reason="")  # the warden says that it needs one
    answers = {"pla.approved", "pla.rejected", "pla.decision_refused"}
    event = await _ask(host, requested, arguments, answers, but=_OF_THE_MOMENT)
    taken = event.type != "pla.decision_refused"
    return Answer(document={"decision": event.type.removeprefix("pla."), **_fields(event)}, exit_code=0 if taken else 1)


async def outcome(host: Host, arguments: dict[str, Any]) -> Answer:
    """Wait until a proposal is closed: its document; exit code 1 when it was approved and is not known to have been
    carried out. Raises BadPla, NoSuchProposal, OutcomeOpen."""
    asked = understood(arguments, OutcomeArguments)
    name = reading.called(host.runtime.engine, asked.proposal_id).proposed.proposal_id

    def closed() -> bool:
        return reading.called(host.runtime.engine, name).stands == "closed"

    with anyio.move_on_after(asked.seconds) as patience:
        await host.until(closed)
    if patience.cancelled_caught:
        raise OutcomeOpen(f"{name} is not over after {asked.seconds:g} s; it goes on", f"pmagent pla show {name}")
    await host.flush()
    return _outcome(reading.called(host.runtime.engine, name))


_FINE: Final = ("executed", "recorded")


def _outcome(view: ProposalView) -> Answer:
    """How a closed proposal ended."""
    document = reading.proposal_document(view, now())  # it is over: no time counts
    return Answer(document=document, exit_code=0 if document["outcome"] in _FINE else 1)


def _outcome_alone(view: ProposalView) -> Answer:
    """The same where no daemon runs: nothing is typed, and only a daemon has a line on which to ask what was. It is not
    waited for, since whoever waits for it here would keep a daemon from starting. Raises OutcomeOpen."""
    name = view.proposed.proposal_id
    if view.stands != "closed":
        what = f"{name} is not over, and there is no daemon that could tell what became of it"
        raise OutcomeOpen(what, f"pmagent up asks the device; then pmagent pla show {name}")
    return _outcome(view)


async def arm(host: Host, arguments: dict[str, Any]) -> Answer:
    """Arm the device: ``{armed, accepted, reasons, mend, mode, open}``; exit code 1 when it is not armed, and nothing
    else has changed: neither the mode, nor the proposals that are open."""
    asked = understood(arguments, OperatorArguments)
    with anyio.move_on_after(OBSERVED_SECONDS):  # nothing is permitted before
        await host.ready()
    requested = PlaArmRequested(operator_id=asked.operator, channel=asked.channel, keeps_mode=True)
    answer = _answer(await _ask(host, requested, arguments, {"pla.arm_answered"}))
    answer.document.update(mode=reading.warden(host.runtime.engine).mode, open=reading.open_names(host.runtime.engine))
    return answer


async def disarm(host: Host, arguments: dict[str, Any]) -> Answer:
    """Disarm the device; what is being typed ends: as ``arm``."""
    asked = understood(arguments, OperatorArguments)
    requested = PlaDisarmRequested(operator_id=asked.operator, channel=asked.channel, reason=asked.reason)
    return _answer(await _ask(host, requested, arguments, {"pla.arm_answered"}, shown=False))


async def status(host: Host, arguments: dict[str, Any]) -> Answer:
    """Mode, session, device, and the proposal that is open."""
    trouble = host.resources[Line].trouble
    why = trouble.message if trouble is not None else None
    answer = read(host.runtime.engine, STATUS, arguments, host.runtime.now(), running=True, trouble=why)
    executing, progress = reading.warden(host.runtime.engine).executing, host.resources[Line].progress
    if progress is not None and executing is not None and executing.execution_id == progress.execution_id:
        typing = {"execution_id": progress.execution_id, "done": progress.done, "of": progress.of}
        answer.document["typing"] = typing
    return answer


async def listing(host: Host, arguments: dict[str, Any]) -> Answer:
    """The newest proposals."""
    return read(host.runtime.engine, LIST, arguments, host.runtime.now())


async def show(host: Host, arguments: dict[str, Any]) -> Answer:
    """One proposal. ``plain``: the payload in plain, if it was asked to be revealed and is held here; it is told to who
    asked, and stands nowhere else; that it was told does. Raises BadPla, NoSuchProposal."""
    answer = read(host.runtime.engine, SHOW, arguments, host.runtime.now())
    if "plain" in answer.document:
        asked = understood(arguments, ShowArguments)
        view = reading.called(host.runtime.engine, asked.proposal_id)
        answer.document["plain"] = await _revealed(host, view, asked, arguments)
    return answer


async def _revealed(
    host: Host, view: ProposalView, asked: ShowArguments, arguments: dict[str, Any]
) -> dict[str, Any] | None:
    """The masked payload in plain, once the log holds that it is handed out."""
    plain = reading.revealed(host.resources[Vault].get(view.proposed.digest))
    if plain is not None:
        revealed = PlaRevealed(
            proposal_id=view.proposed.proposal_id, digest=view.proposed.digest, operator_id=asked.operator,
            channel=asked.channel,
        )  # fmt: skip
        draft = await anyio.to_thread.run_sync(host.drafted, revealed, _request(arguments))
        await host.tell_draft(draft)
    return plain


OUTCOME: Final = "pla.outcome"
STATUS: Final = "pla.status"
LIST: Final = "pla.list"
SHOW: Final = "pla.show"


def read(
    engine: Engine, name: str, arguments: dict[str, Any], at: str = "", *, running: bool = False,
    trouble: str | None = None,
) -> Answer:  # fmt: skip
    """``status``, ``list``, ``show``, ``outcome``; nothing is recorded. ``at``: the time now; "": the clock's, but not
    before the log's last event, for a log that nobody writes. Raises BadPla, NoSuchProposal, OutcomeOpen."""
    at = at or LogClock(engine.sequencer.time).now()
    if name == STATUS:
        understood(arguments, StatusArguments)
        return Answer(document=reading.status_document(engine, at, running=running, trouble=trouble))
    if name == LIST:
        return Answer(document=reading.list_document(engine, at, understood(arguments, ListArguments).count))
    if name == OUTCOME:
        return _outcome_alone(reading.called(engine, understood(arguments, OutcomeArguments).proposal_id))
    asked = understood(arguments, ShowArguments)
    view = reading.called(engine, asked.proposal_id)
    document = {**reading.proposal_document(view, at), "action_proposal": reading.contract_document(view)}
    if asked.reveal and view.proposed.masked:
        document["plain"] = None
    return Answer(document=document)


def read_alone(workspace: Path, name: str, arguments: dict[str, Any]) -> Answer:
    """``read`` of the workspace's log. Raises CorruptLog, HistoryError, and what ``read`` raises."""
    with folded(workspace) as (engine, _, _):
        return read(engine, name, arguments)


def _proposal_seconds(asked: PlaProposalRequested) -> float:
    """So long a proposal may take: a literal one next to nothing, one from a frame or of a model a while."""
    looking = FRAME_SECONDS if asked.frame is not None else 0.0
    return WAY_SECONDS + looking + (asked.limits.seconds if asked.model else 0.0)


def _wish(host: Host, asked: ProposeArguments, settings: PlaSettings) -> ProposalRequest:
    """The request: it asks the model of the settings where the goal states nothing literally."""
    model = asked.model
    if not model and settings.model and parse_goal(asked.goal) is None:
        model = settings.model
    if not model and not asked.goal.strip():
        what = "there is no goal, and no model that could do without one"
        raise BadProposal(what, "e.g. pmagent pla propose 'type: ls'")
    if model and not (model.isprintable() and model.strip()):
        raise BadProposal("the model's name is no printable text", "name one, e.g. --model anthropic:NAME")
    look = bool(asked.look or asked.frames) or (bool(model) and (bool(settings.frames) or not asked.goal.strip()))
    frame = frame_source(asked.frames, settings, host.layout.workspace) if look else None
    if model:
        host.resources[Models].check("langchain", model)
    return ProposalRequest(
        goal=asked.goal, operator=asked.operator, channel=asked.channel, why=asked.why, model=model, frame=frame
    )


def _drafted(host: Host, ready: Made, request: str) -> Draft:
    """The request as it will stand in the log. Raises BadProposal."""
    try:
        draft = host.drafted(ready.asked, request)
    except msgspec.ValidationError as error:
        raise BadProposal(f"with its secrets masked, this cannot be asked for: {error}", "use fewer secrets") from error
    if draft.data.action != ready.asked.action or draft.data.digest != ready.asked.digest:
        raise BadProposal(
            "what the log may hold of this action is not what is to be approved: a secret of this process stands in it",
            "unset the variable that holds a word of it, if that is no secret",
        )
    return draft


def _held_here(host: Host, secret: object) -> list[str]:
    if secret is None or reading.warden(host.runtime.engine).lasting:
        return []
    return ["the text is masked in the log, and without a daemon nobody keeps it: it cannot be revealed or typed"]


def _completed(host: Host, asked: PlaDecisionRequested) -> PlaDecisionRequested:
    """A rejection is about whatever the proposal is: it types nothing, so it needs no digest."""
    view = reading.warden(host.runtime.engine).proposals.get(asked.proposal_id)
    if asked.decision != "REJECTED" or asked.digest or view is None:
        return asked
    return msgspec.structs.replace(asked, digest=view.proposed.digest)


async def _broken(host: Host, broken: foreign_documents.Broken, arguments: dict[str, Any], channel: Channel) -> Answer:
    """Record that a document is none; the violation answers."""
    before, open_ones = reading.warden(host.runtime.engine).mode, reading.open_names(host.runtime.engine)
    event = await _ask(host, foreign_documents.fact(broken, channel), arguments, {"pla.violation"})
    mode, gone = reading.warden(host.runtime.engine).mode, reading.withdrawn(host.runtime.engine, open_ones)
    document = {"violation": True, "pointer": broken.pointer, **_fields(event), "mode": mode, "withdrawn": gone}
    return Answer(document={**document, "lowered": mode != before}, exit_code=1)


async def _ask(
    host: Host, payload: Payload, arguments: dict[str, Any], answers: set[str], seconds: float = ANSWER_SECONDS,
    *, whole: bool = True, but: tuple[str, ...] = (), shown: bool = True,
) -> Event:
    request = _request(arguments)
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, payload, request)
    except msgspec.ValidationError as error:
        raise BadPla(f"with its secrets masked, this cannot be asked for: {error}", "use fewer words") from error
    return await host.ask_draft(draft, answers, seconds, whole=whole, but=but, shown=shown)


def _request(arguments: dict[str, Any]) -> str:
    request = arguments.get("request")
    if not isinstance(request, str) or not request.startswith("pla.") or ":" in request or len(request) > 200:
        raise BadPla("the request id is missing", "it begins with the operation's name and -")
    return request


def _answer(event: Event) -> Answer:
    return Answer(document=_fields(event), exit_code=0 if event.data.accepted else 1)


def _fields(event: Event) -> dict[str, Any]:
    """An answer's payload, and where it stands."""
    plain: dict[str, Any] = msgspec.to_builtins(event.data)
    return {**plain, "position": event.position}


def _observed(host: Host, position: int) -> dict[str, Any] | None:
    return _fields(host.event(position)) if position else None
