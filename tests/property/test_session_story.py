"""The console's fold of one session, from where it began, is what folding the whole log gives."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.console.pages.reading.pla_story import _Fold
from pmagent.contracts.content import whole as whole_of
from pmagent.contracts.hid import HidLost
from pmagent.contracts.pla_events import PlaDecisionRequested, PlaModeAnswered, PlaModeRequested, PlaProposalRefused
from pmagent.contracts.pla_events import PlaProposalRequested as Asked
from pmagent.events.event import Draft
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.projections.core.documents import Documents, folded
from pmagent.projections.sessions.paths import log_path, violations_path
from pmagent.projections.sessions.sessions import Sessions
from tests.support.logs import FOLDER, BatchWriter, open_segments
from tests.support.memory_disk import MemoryDisk
from tests.support.pla_sessions import LOG_ID, NO_BLOBS, Tale

WHO = ("alice", "bob", "carol")


def _ask(tale: Tale, who: str) -> None:
    tale.tell(PlaModeRequested(mode="SUGGEST", operator_id=who, channel="cli"), correlation=f"ask-{who}")


def _propose(tale: Tale, who: str) -> None:
    tale.tell(Asked(goal="type: x", requested_by=who, channel="cli"), correlation=f"ask-{who}")


def _decide(tale: Tale, who: str) -> None:
    asked = PlaDecisionRequested(proposal_id="prop-1", decision="APPROVED", digest="", operator_id=who, channel="cli")
    tale.tell(asked, correlation=f"ask-{who}")


def _answer(tale: Tale, who: str) -> None:
    """To a request of some time ago: who made it stands in the entry."""
    asked = [event.position for event in tale.events if event.type.endswith("_requested")]
    request = asked[-1 - WHO.index(who) * 7 :][0] if asked else 1
    tale.tell(
        PlaModeAnswered(request=request, session_id=_standing(tale), accepted=False, mode="OBSERVE", reasons=["no"]),
        causation=request,
    )


def _refuse(tale: Tale, who: str) -> None:
    asked = [event.position for event in tale.events if event.type.endswith("_requested")] or [1]
    refused = PlaProposalRefused(request=asked[-1], session_id=_standing(tale), code="goal", reasons=[who], mend=[])
    tale.tell(refused, causation=asked[-1])


def _lost(tale: Tale, who: str) -> None:
    tale.tell(HidLost(boot_id="0" * 16, code="unplugged", text=who))


def _violated(tale: Tale, who: str) -> None:
    tale.violate(session_id=_standing(tale), text=who)


def _turn(tale: Tale, _who: str) -> None:
    """The session that stands ends, or another begins."""
    name = _standing(tale)
    if name:
        tale.end(session_id=name)
    else:
        tale.begin(f"pla-{len(tale.events):032x}")


def _standing(tale: Tale) -> str:
    turns = [event for event in tale.events if event.type in ("pla.session_began", "pla.session_ended")]
    return turns[-1].data.session_id if turns and turns[-1].type == "pla.session_began" else ""


STEPS: list[Callable[[Tale, str], None]] = [_ask, _propose, _decide, _answer, _refuse, _lost, _violated, _turn]
STEP = st.tuples(st.sampled_from(STEPS), st.sampled_from(WHO), st.integers(1, 20))
HISTORIES = st.lists(STEP, min_size=4, max_size=24)


@settings(deadline=None)
@given(HISTORIES)
def test_a_session_folded_from_its_beginning_is_the_one_of_the_whole_log(
    history: list[tuple[Callable[[Tale, str], None], str, int]],
) -> None:
    tale = Tale()
    for step, who, times in history:
        for _ in range(times if step in (_ask, _lost) else 1):
            step(tale, who)
    disk = MemoryDisk()
    writer = BatchWriter(open_segments(disk, log_id=LOG_ID, segment_bytes=10**6))
    writer.create(LOG_ID)
    writer.write(
        Draft(event.type, event.data, event.raw, event.id, event.actor, event.correlation, event.causation, event.kind)
        for event in tale.events[1:]
    )
    storage = SegmentReader(disk, FOLDER)
    whole = {
        path: whole_of(part.content(), NO_BLOBS)
        for parts in folded(storage, Documents([Sessions(kept=10**6, entries=10**6)]), NO_BLOBS)
        for path, part in parts.items() if path.startswith("sessions/")
    }  # fmt: skip
    stored = list(events(storage))
    for began in [event for event in stored if event.type == "pla.session_began"]:
        fold = _Fold(storage, NO_BLOBS, began, lambda: True)
        for event in stored[began.position - 1 :]:
            fold.take(event)
        session_id = tale.events[began.position - 1].data.session_id
        session = fold.session(session_id)
        assert session is not None
        assert b"".join(session.log.content.pieces()) == whole[log_path(session_id)]
        assert b"".join(session.violations.content.pieces()) == whole.get(violations_path(session_id), b"")
