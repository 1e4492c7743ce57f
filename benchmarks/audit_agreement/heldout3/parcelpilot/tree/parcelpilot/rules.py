"""What is done for which exception. Plain rules, so that dispatch can read them."""
from __future__ import annotations

from .model import Kind, ParcelException, Reading, Step

ALWAYS_A_PERSON = 400_00
ATTEMPTS = 2


def decide(exception: ParcelException, reading: Reading) -> Step:
    if not reading.certain or reading.kind is Kind.OTHER:
        return Step(action="hand_over", reason=f"not clear: {reading.summary}", needs_yes=False)
    match reading.kind:
        case Kind.ADDRESS:
            step = Step(action="ask_address", reason=reading.summary, needs_yes=False)
        case Kind.ABSENT if exception.attempts < ATTEMPTS:
            step = Step(action="retry", reason=reading.summary, needs_yes=False)
        case Kind.ABSENT:
            return Step(action="hand_over", reason=f"{exception.attempts} attempts already", needs_yes=False)
        case Kind.DAMAGED | Kind.LOST:
            step = Step(action="replace", reason=reading.summary, needs_yes=True)
        case _:
            step = Step(action="refund", reason=reading.summary, needs_yes=True)
    if exception.value > ALWAYS_A_PERSON:
        step.needs_yes = True
    return step
