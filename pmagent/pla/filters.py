"""Which proposals a list shows: the same words on the console and at the shell."""

from __future__ import annotations

from typing import Any, Final

STANDS: Final = ("open", "executing", "closed")


def fits(document: dict[str, Any], stands: str = "", by: str = "", outcome: str = "") -> bool:
    """Whether a proposal's document stands so, was asked for or decided by this operator, and came to this; "": any."""
    return (
        stands in ("", document["stands"])
        and by in ("", document["requested_by"], document["decided_by"])
        and outcome in ("", document["outcome"])
    )
