"""The history of every release verifies, opens and replays for ever (docs/design.md §3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import anyio
import msgspec
import pytest

from pmagent import __version__
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.kernel import reader
from pmagent.actors.oa.actor import Oa
from pmagent.actors.oa.state import OaActorState
from pmagent.actors.registry import all_actors
from pmagent.contracts.audit_events import (
    AuditConcluded,
    AuditCriterionRuled,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
)
from pmagent.contracts.oa import OaPermitRequested, OaSnapshotRequested, OaSnapshotTaken
from pmagent.contracts.otherwise import DecisionEntry, FieldChange, Otherwise
from pmagent.contracts.payload import Correlated, Payload, decode
from pmagent.contracts.pla_events import (
    PlaDecisionRefused,
    PlaModeChanged,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaViolation,
)
from pmagent.contracts.reasoning import PROGRAM_IDS
from pmagent.contracts.reasoning_events import ReasoningConcluded
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.otherwise import shipped
from pmagent.projections.oa.state import PATH
from pmagent.replay.replayer import replay_log
from pmagent.service.host import open_host
from tests.support import audits_history, reasoning_history, runs_history, typing_history
from tests.support.histories import ABOUT, FOLDER, History, problems, record, recorded
from tests.support.sandboxes import needs_sandbox


@pytest.mark.parametrize("history", recorded(), ids=lambda folder: folder.name)
def test_a_recorded_history_verifies_opens_and_replays(history: Path) -> None:
    assert problems(history, all_actors()) == []


@pytest.mark.slow
def test_a_life_with_runs_of_every_kind_is_recorded_without_problems(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "QUIET_S", 0.0)
    reasoning_history.live(workspace)
    made = record(workspace, "reasoning", tmp_path / "histories")
    assert problems(made, all_actors()) == []
    assert kinds(made) == EVERY_KIND


def test_the_history_of_reasoning_holds_runs_of_every_kind() -> None:
    assert kinds(FOLDER / "reasoning") == EVERY_KIND


EVERY_KIND = (
    set(PROGRAM_IDS),
    {
        ("OK", "rules"), ("OK", "langchain"), ("DEGRADED", "rules"), ("DEGRADED", "langchain"), ("BLOCKED", ""),
        ("FAILED", ""),
    },
)


def kinds(history: Path) -> tuple[set[str], set[tuple[str, str]]]:
    """The programs that ran, and status and engine of their results."""
    log = SegmentReader(RealDisk(), str(history / "log"))
    ended = [decode(one.type, one.data) for one in events(log) if one.type == "reasoning.concluded"]
    log.close()
    results = [one for one in ended if isinstance(one, ReasoningConcluded)]
    return {one.result.program_id for one in results}, {(one.result.status, one.engine) for one in results}


@needs_sandbox
@pytest.mark.slow
def test_a_life_with_runs_of_every_end_is_recorded_without_problems(workspace: Path, tmp_path: Path) -> None:
    runs_history.live(workspace)
    made = record(workspace, "runs", tmp_path / "histories")
    assert problems(made, all_actors()) == []
    assert ends(made) == EVERY_END


def test_the_history_of_runs_holds_runs_of_every_end() -> None:
    assert ends(FOLDER / "runs") == EVERY_END


EVERY_END = {
    ("run.ended", state) for state in ("planned", "done", "failed", "cancelled", "timed_out", "stopped")
} | {("run.refused", code) for code in ("bad_plan", "not_permitted")}


def ends(history: Path) -> set[tuple[str, str]]:
    """How runs ended: the type of the event, and the state or the code."""
    log = SegmentReader(RealDisk(), str(history / "log"))
    over = [(one.type, decode(one.type, one.data)) for one in events(log) if one.type in ("run.ended", "run.refused")]
    log.close()
    return {(name, data.state if name == "run.ended" else data.code) for name, data in over}


@pytest.mark.slow
def test_a_life_with_audits_of_every_end_is_recorded_without_problems(workspace: Path, tmp_path: Path) -> None:
    audits_history.live(workspace, tmp_path)
    made = record(workspace, "audits", tmp_path / "histories")
    assert problems(made, all_actors()) == []
    assert audits(made) == EVERY_AUDIT


def test_the_history_of_audits_holds_audits_of_every_end() -> None:
    assert audits(FOLDER / "audits") == EVERY_AUDIT


EVERY_AUDIT = {
    "concluded", "not judged", "set aside", "dissent", "second round", "rejected",
    *("judge", "not_found", "pdf_missing", "cancelled"),
}  # fmt: skip


def audits(history: Path) -> set[str]:
    """The ends of audits: how they failed, and what was special about the others."""
    log = SegmentReader(RealDisk(), str(history / "log"))
    found: set[str] = set()
    for one in events(log):
        match decode(one.type, one.data):
            case AuditFailed(code=code):
                found.add(code)
            case AuditConcluded():
                found.add("concluded")
            case AuditOpinionRejected():
                found.add("rejected")
            case AuditOpinionGiven(round=2):
                found.add("second round")
            case AuditCriterionRuled() as ruled:
                said = {"not judged": ruled.final_score is None, "set aside": ruled.set_aside,
                        "dissent": ruled.dissent_summary}  # fmt: skip
                found |= {name for name, is_so in said.items() if is_so}
    log.close()
    return found


@pytest.mark.slow
def test_a_life_with_typing_of_every_end_is_recorded_without_problems(workspace: Path, tmp_path: Path) -> None:
    typing_history.live(workspace, tmp_path)
    made = record(workspace, "typing", tmp_path / "histories")
    assert problems(made, all_actors()) == []
    assert typings(made) == EVERY_TYPING


def test_the_history_of_typing_holds_proposals_of_every_end() -> None:
    assert typings(FOLDER / "typing") == EVERY_TYPING


EVERY_TYPING = {
    "executed", "aborted", "unknown", "recorded", "rejected", "expired",
    *("refused: mode", "refused: credential", "refused: unfit", "decision: digest", "decision: decided"),
    *("mode: killed", "mode: device_reset", "mode: requested"),
    *("violation: mode_mismatch", "violation: schema_validation", "violation: missing_field"),
}  # fmt: skip


def typings(history: Path) -> set[str]:
    """The ends of proposals and decisions, and why modes changed."""
    log = SegmentReader(RealDisk(), str(history / "log"))
    found: set[str] = set()
    for one in events(log):
        match decode(one.type, one.data):
            case PlaProposalClosed(outcome=outcome):
                found.add(outcome)
            case PlaProposalRefused(code=code):
                found.add(f"refused: {code}")
            case PlaDecisionRefused(code=code):
                found.add(f"decision: {code}")
            case PlaModeChanged(code=code):
                found.add(f"mode: {code}")
            case PlaViolation(kind=kind):
                found.add(f"violation: {kind}")
    log.close()
    return found


@pytest.fixture
def history(workspace: Path, tmp_path: Path) -> Path:
    """A history recorded now, of a short life of the example workspace."""

    async def live() -> None:
        async with open_host(workspace, "daemon") as host:
            await host.ready()
            await host.ask(OaSnapshotRequested(), "s", {"oa.snapshot_taken"})
            asked = OaPermitRequested(action="feature_work", subject="lamp", holder="tests")
            await host.ask(asked, "p", {"oa.permit_granted", "oa.permit_refused"})

    anyio.run(live)
    return record(workspace, "now", tmp_path / "histories")


def test_what_is_recorded_now_is_without_problems_and_says_how_it_ends(history: Path) -> None:
    assert problems(history, all_actors()) == []
    about = msgspec.json.decode((history / ABOUT).read_bytes(), type=History)
    assert about.documents == [PATH]
    assert about.events > 5
    with pytest.raises(FileExistsError):
        record(history.parents[1] / "workspace", history.name, history.parent)


class Pessimist(Oa):
    """Today's OA says that no snapshot ever succeeds."""

    def decide(self, state: OaActorState, event: Event) -> Iterable[Payload | Correlated]:
        """See the class."""
        for payload in super().decide(state, event):
            changed = isinstance(payload, OaSnapshotTaken)
            yield msgspec.structs.replace(payload, success=False) if changed else payload


SUCCESS = FieldChange(at="/success", recorded="true", decided="false")
GLOOM = DecisionEntry(
    since="99.0", why="no snapshot ever succeeds", actor="oa", type="oa.snapshot_taken", fields=(SUCCESS,)
)


def test_code_that_decides_otherwise_is_found_unless_it_is_listed(history: Path) -> None:
    kernel = all_actors()[0]
    changed: list[AnyActor] = [kernel, Pessimist()]
    assert any("decided otherwise" in line for line in problems(history, changed))
    assert problems(history, changed, Otherwise([GLOOM])) == []
    assert problems(history, all_actors(), Otherwise([GLOOM])) == []
    written_now = msgspec.structs.replace(GLOOM, since=__version__)
    assert problems(history, changed, Otherwise([written_now])) != []


def test_each_entry_of_the_table_covers_something_that_a_release_recorded() -> None:
    results = [replay_log(folder / "log", all_actors(), what_if=True, otherwise=shipped()) for folder in recorded()]
    covered = {(one.since, one.why) for result in results for one in result.otherwise}
    assert {(one.since, one.why) for one in shipped().entries if isinstance(one, DecisionEntry)} <= covered


def test_a_history_that_was_cut_or_altered_is_found(history: Path) -> None:
    segment = next((history / "log").glob("*.jsonl"))
    whole = segment.read_bytes()
    for damaged in (whole[: whole.rindex(b"\n", 0, -1) + 1], whole.replace(b'"oa"', b'"OA"', 1)):
        segment.write_bytes(damaged)
        with pytest.raises(CorruptLog):
            problems(history, all_actors())
