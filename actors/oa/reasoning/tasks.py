"""Each reasoning program's task in words, for models; the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TASKS: Final[Mapping[str, str]] = {
    "SafeOPSDecision": (
        "Decide whether the operation named in `goal` may be carried out now. PROCEED: nothing speaks against it. "
        "WARN: it may, once the conditions that you list are met. ABORT: it must not. "
        "A constraint in `oa_context.constraints` that forbids the operation means ABORT."
    ),
    "OPSBlockGenerator": (
        "Write the shell commands, in order, that reach `goal`, for a person to review and run: one command a line, "
        "no prose. Break no constraint in `oa_context.constraints`. Rate the block's complexity from 1 to 10 and name "
        "its risks. When the goal does not say enough, give no commands and say in the risk analysis what is missing."
    ),
    "GuardFailureInterpreter": (
        "Say why the guard failed whose report is in `oa_context.guard_output` or in the tools' results: the first "
        "cause, concretely. Give the steps that mend it, one a line, and say whether the failure may pass by itself."
    ),
    "PhaseTransitionValidator": (
        "Decide whether the phase named in `goal` may begin. List every criterion that is not met. READY only when "
        "there is none."
    ),
}
"""Program id -> its task."""
