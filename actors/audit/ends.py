"""How an audit ends without a report, and what is taken back then; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.state import Audit
from pmagent.contracts.audit_events import REASON_CHARS_MAX, AuditFailed, FailureCode
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.model import ModelWithdrawn
from pmagent.contracts.payload import Payload

AUDITOR: Final = "auditor"
"""The actor's name: the holder of its permits."""
ACTION: Final = "diagnostic"
"""The action class of an audit's permits: it reads, and changes nothing."""


def abandoned(audit: Audit, *over: int) -> Iterator[Payload]:
    """Take back what the audit still waits for, but for what is ``over`` already."""
    for position in audit.open_effects:
        if position not in over:
            yield EffectCancelRequested(request=position)
    for ask in audit.open_asks:
        if ask not in over:
            yield ModelWithdrawn(ask=ask)


def failure(audit: Audit, code: FailureCode, reasons: list[str], mend: list[str]) -> AuditFailed:
    """The audit's end without a report."""
    return AuditFailed(
        request=audit.requested,
        audit_id=audit.audit_id,
        code=code,
        reasons=[_bounded(one) for one in reasons],
        mend=[_bounded(one) for one in mend],
    )


def _bounded(text: str) -> str:
    return text if len(text) <= REASON_CHARS_MAX else f"{text[: REASON_CHARS_MAX - 1]}…"
