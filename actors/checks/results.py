"""The result of a check, in words; pure."""

from __future__ import annotations

from typing import Any, Final

from pmagent.contracts.checks import TAIL_CHARS_MAX, CheckRan, CheckResult, CheckUnstarted

_MESSAGE_CHARS_MAX: Final = 300
_MEND_CHARS_MAX: Final = 200
_LIMITS_MAX: Final = 4
_LIMIT_CHARS_MAX: Final = 100
"""Bounds of what a result tells; what there is to tell stands whole in the event that ended the check."""

_AGAIN: Final = "run it again"


def of_run(name: str, seconds: float, ran: CheckRan, end: int) -> CheckResult:
    """The result of a check that was run, by the fact at position ``end``. It has passed when it ended by itself, with
    exit code 0 and within its limits."""
    stdout, stderr = ran.stdout.strip(), ran.stderr.strip()
    passed = ran.exit_code == 0 and not (ran.timed_out or ran.exceeded)
    last = (stderr or stdout).rpartition("\n")[2]
    ending = how(ran, seconds)
    return CheckResult(
        name=name, passed=passed, ran=True,
        message=(f"{ending}: {last}" if last and not passed else ending)[:_MESSAGE_CHARS_MAX], exit_code=ran.exit_code,
        signal=ran.signal, timed_out=ran.timed_out, duration_ms=ran.duration_ms,
        unenforced=[text[:_LIMIT_CHARS_MAX] for text in ran.unenforced[:_LIMITS_MAX]], stdout=stdout[-TAIL_CHARS_MAX:],
        stderr=stderr[-TAIL_CHARS_MAX:], end=end,
    )


def how(ran: CheckRan, seconds: float) -> str:
    """How a run ended."""
    if ran.timed_out:
        return f"it took longer than {seconds:g} s, and was ended"
    if ran.exceeded:
        return f"it was ended: {ran.exceeded}"
    return f"ended by signal {ran.signal}" if ran.signal is not None else f"exit code {ran.exit_code}"


def of_unstarted(name: str, unstarted: CheckUnstarted, end: int) -> CheckResult:
    """The result of a check that could not be started."""
    return not_run(name, unstarted.text, unstarted.mend, end)


def not_run(name: str, why: str, mend: str = _AGAIN, end: int = 0) -> CheckResult:
    """The result of a check that did not come to an end of its own. It has not passed."""
    message = f"it could not be run: {why}"[:_MESSAGE_CHARS_MAX]
    return CheckResult(name=name, passed=False, ran=False, message=message, mend=mend[:_MEND_CHARS_MAX], end=end)


_DETAILS: Final = ("exit_code", "signal", "timed_out", "duration_ms", "unenforced", "stdout", "stderr", "mend")


def details(result: CheckResult) -> dict[str, Any]:
    """The details of a result beside verdict and message, for documents: no null, nothing empty."""
    found = {key: getattr(result, key) for key in _DETAILS}
    details = {key: value for key, value in found.items() if value not in (None, "", []) and value is not False}
    return {"ran": result.ran, **details, **({"position": result.end} if result.end else {})}
