"""State of the tribunal. All parallel channels have reducers."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from .models import Evidence, Opinion, Verdict

DIMENSIONS = ("history", "state", "orchestration", "tooling", "structured_output", "documentation")


class TribunalState(TypedDict, total=False):
    repository: str
    report: str
    checkout: str
    evidence: Annotated[list[Evidence], operator.add]
    opinions: Annotated[list[Opinion], operator.add]
    failures: Annotated[list[str], operator.add]
    verdicts: list[Verdict]
    document: str
