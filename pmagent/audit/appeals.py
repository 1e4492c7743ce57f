"""``audit-appeals.yaml``: objections to evidence, which an audit shows and does not obey."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.audit.source import BadAudit
from pmagent.contracts.audit_events import APPEALS_MAX, Appeal
from pmagent.contracts.text import decoded, from_either
from pmagent.jobs.kinds import Source

NAME: Final = "audit-appeals.yaml"
"""Lies beside the rubric."""
APPEALS_BYTES_MAX: Final = 256 * 1024
_FORM: Final = "it holds appeals, each with evidence (a key or a goal), because, and at (a path), which may be left out"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    appeals: list[Appeal]


def appeals_in(source: Source) -> list[Appeal]:
    """The appeals in the file. Raises BadText, BadAudit."""
    document = from_either(decoded(source.content, source.where, APPEALS_BYTES_MAX), source.where)
    try:
        found = msgspec.convert(document, _File).appeals
    except msgspec.ValidationError as error:
        raise BadAudit(f"{source.where} holds no appeals: {error}", _FORM) from error
    if len(found) > APPEALS_MAX:
        raise BadAudit(f"{source.where} holds {len(found)} appeals; at most {APPEALS_MAX} may be", "keep what matters")
    return found
