"""Answers that commands print, built from the events that gave them; pure (docs/design.md §12.3, §12.4)."""

from __future__ import annotations

from pmagent.contracts.kernel import Reason
from pmagent.contracts.oa import OaBootRefused, OaSessionBooted, OaSnapshotTaken
from pmagent.contracts.oa_documents import (
    BootAnswer,
    BootEnvelope,
    BootRefusal,
    EnvelopeKernel,
    SessionMetadata,
    SnapshotAnswer,
    StateDocument,
)
from pmagent.projections.oa.state import PATH


def snapshot_answer(taken: OaSnapshotTaken, state: StateDocument | None) -> SnapshotAnswer:
    """The answer that ``pmagent oa snapshot`` prints. ``state``: STATE.json as of the observation of ``taken``."""
    if taken.success and state is not None:
        return SnapshotAnswer(success=True, path=PATH, state=state)
    return SnapshotAnswer(success=False, path=PATH, state=None, error=_error("no snapshot was taken", taken.reasons))


def boot_answer(booted: OaSessionBooted, time: str) -> BootAnswer:
    """The answer that ``pmagent boot oa`` prints; ``time`` is that of the event that carries ``booted``."""
    return BootAnswer(oa_boot_envelope=BootEnvelope(
        timestamp=time, kernel=EnvelopeKernel(phase=booted.phase, branch=booted.branch, mode=booted.mode),
        interpretation=booted.interpretation,
        session_metadata=SessionMetadata(session_id=booted.session_id, workspace=booted.workspace),
    ))


def boot_refusal(refused: OaBootRefused) -> BootRefusal:
    """The answer that ``pmagent boot oa`` prints when no session was booted."""
    return BootRefusal(
        success=False, mode=refused.mode, error=_error("no session was booted", refused.reasons),
        reasons=[reason.text for reason in refused.reasons],
    )


def _error(what: str, reasons: list[Reason]) -> str:
    """``what``, and each reason that stands in the way with what would mend it."""
    blocking = [reason for reason in reasons if reason.mode == "BLOCKED"] or reasons
    texts = [f"{reason.text} (mend: {reason.mend})" if reason.mend else reason.text for reason in blocking]
    return f"{what}: {'; '.join(texts)}" if texts else what
