"""What came of a check, in words; pure."""

from __future__ import annotations

from typing import Final

from contracts.checks import TAIL_CHARS_MAX, CheckRan, CheckResult, CheckUnstarted

_LINE_CHARS_MAX: Final = 200
"""So much of the last line stands in a message."""
_TEXT_CHARS_MAX: Final = 500
_WORDS_MAX: Final = 8

_AGAIN: Final = "run it again"


def of_run(name: str, seconds: float, ran: CheckRan, end: int) -> CheckResult:
    """The result of a check that was run, by the fact at position ``end``. It has passed when it ended by itself, with
    exit code 0 and within its limits."""
    written = (ran.stderr if ran.stderr.strip() else ran.stdout).strip()
    passed = ran.exit_code == 0 and not (ran.timed_out or ran.exceeded)
    last = written.rpartition("\n")[2][:_LINE_CHARS_MAX]
    said = how(ran, seconds)
    return CheckResult(
        name=name,
        passed=passed,
        ran=True,
        message=f"{said}: {last}" if last and not passed else said,
        exit_code=ran.exit_code,
        signal=ran.signal,
        timed_out=ran.timed_out,
        duration_ms=ran.duration_ms,
        unenforced=[text[:_TEXT_CHARS_MAX] for text in ran.unenforced[:_WORDS_MAX]],
        tail=written[-TAIL_CHARS_MAX:],
        end=end,
    )


def how(ran: CheckRan, seconds: float) -> str:
    """How a run ended."""
    if ran.timed_out:
        return f"it took longer than {seconds:g} s, and was ended"
    if ran.exceeded:
        return f"it was ended: {'; '.join(ran.exceeded[:_WORDS_MAX])[:_TEXT_CHARS_MAX]}"
    return f"ended by signal {ran.signal}" if ran.signal is not None else f"exit code {ran.exit_code}"


def of_unstarted(name: str, unstarted: CheckUnstarted, end: int) -> CheckResult:
    """The result of a check that could not be started."""
    return not_run(name, unstarted.text, unstarted.mend, end)


def not_run(name: str, why: str, mend: str = _AGAIN, end: int = 0) -> CheckResult:
    """The result of a check that did not come to an end of its own. It has not passed."""
    message = f"it could not be run: {why[:_TEXT_CHARS_MAX]}"
    return CheckResult(name=name, passed=False, ran=False, message=message, mend=mend[:_TEXT_CHARS_MAX], end=end)
