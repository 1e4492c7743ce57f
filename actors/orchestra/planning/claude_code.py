"""The program ``claude`` (Claude Code, print mode) as the planner: how it is called, and what its end says; pure.

The contract is its documented command line (code.claude.com/docs: CLI reference, headless mode, environment variables)
as version 2.1.330 keeps it. The prompt comes on standard input, at most 10 MB of it. One JSON object of type ``result``
goes to standard output, for failures too; these end it with 1, and mostly still say ``"subtype": "success"``. Where the
operator's display is verbose, a list of messages that ends with that object comes instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.checks.text import plain
from pmagent.contracts.orchestra import COUNT_MAX
from pmagent.contracts.orchestra_events import (
    REASON_CHARS_MAX,
    PlannerCallRequested,
    PlannerFailed,
    PlannerFailure,
    PlannerReplied,
)

PROGRAM: Final = "claude"
OLDEST: Final = "2.1.169"
"""The oldest version that knows all of ``arguments``; an older one refuses them, and is refused for it."""

OUT_BYTES_MAX: Final = 8 * 1024 * 1024
"""A longer output is no plan."""
ERR_BYTES_MAX: Final = 64 * 1024

_FILE: Final = "give a plan with --plan FILE"
_KEPT: Final = frozenset((
    "HOME", "PATH", "LANG",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
))  # fmt: skip
_PREFIXES: Final = ("ANTHROPIC_", "CLAUDE_")
_SET: Final = {
    "TERM": "dumb",
    # Without it "@/a/path" anywhere in a prompt is replaced by that file's content, tools or no tools.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # Nothing leaves but the call: no telemetry, no update in the background.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_NO_LOGIN: Final = ("/login", "not logged in", "invalid api key", "oauth token")
_PASSING: Final = frozenset((408, 409, 429))
"""Statuses below 500 that another call may not meet."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended. ``exit_code`` None: it never started, or was killed together with what held it. ``timed_out``,
    ``too_long``: it was ended for that. ``stdout`` and ``stderr`` are what was kept."""

    exit_code: int | None
    timed_out: bool
    too_long: bool
    stdout: bytes
    stderr: bytes
    seconds: float


def arguments(model: str) -> tuple[str, ...]:
    """The arguments for one answer, without tools, and without anything that a folder or a user has set up for work:
    settings, hooks, plugins, MCP servers, memory files, commands. ``model`` cannot become an option of its own."""
    return (
        "--print", "--output-format=json", f"--model={model}", "--max-turns=1", "--tools=", "--strict-mcp-config",
        "--setting-sources=", "--safe-mode", "--disable-slash-commands", "--no-session-persistence",
    )  # fmt: skip


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """The subset of the variables ``own`` that the planner gets: its login and the proxy settings. Of ``PATH`` it gets
    the absolute folders."""
    kept = {name: value for name, value in own.items() if name in _KEPT or name.startswith(_PREFIXES)}
    path = ":".join(folder for folder in own.get("PATH", "").split(":") if folder.startswith("/"))
    return {**kept, "PATH": path, **_SET}


def not_installed(request: int, asked: PlannerCallRequested) -> PlannerFailed:
    """There is no such program."""
    return PlannerFailed(
        request=request, run_id=asked.run_id, code="not_installed", again=False, duration_ms=0,
        text=f"no plan can be asked for: there is no program {PROGRAM} (Claude Code) in a folder of PATH",
        mend=f"install Claude Code {OLDEST} or newer and log in, or {_FILE}",
    )  # fmt: skip


def unheld(request: int, asked: PlannerCallRequested, why: str, mend: str) -> PlannerFailed:
    """No sandbox is there that would end the planner together with this process."""
    return PlannerFailed(
        request=request, run_id=asked.run_id, code="not_installed", again=False, duration_ms=0,
        text=f"no plan can be asked for: {why}", mend=f"{mend}, or {_FILE}",
    )  # fmt: skip


def outcome(request: int, asked: PlannerCallRequested, ended: Ended) -> PlannerReplied | PlannerFailed:
    """The outcome of the call requested at ``request``. A reply's text is passed on unchecked."""
    verdict = _verdict(asked, ended)
    duration = round(ended.seconds * 1000)
    if isinstance(verdict, _Failure):
        return PlannerFailed(
            request=request, run_id=asked.run_id, code=verdict.code, text=verdict.text, mend=verdict.mend,
            again=verdict.again, duration_ms=duration,
        )
    return PlannerReplied(
        request=request, run_id=asked.run_id, text=verdict["result"], model=asked.model, duration_ms=duration,
        tokens=_tokens(verdict.get("usage")), cost_usd=_dollars(verdict.get("total_cost_usd")),
    )


class _Failure(msgspec.Struct, frozen=True):
    code: PlannerFailure
    text: str
    mend: str = f"try again, or {_FILE}"
    again: bool = True


def _verdict(asked: PlannerCallRequested, ended: Ended) -> dict[str, Any] | _Failure:
    """The result object of a call that went well, else why it did not."""
    if ended.too_long:
        return _Failure("too_long", f"the planner wrote more than {OUT_BYTES_MAX} bytes", _FILE, again=False)
    if ended.timed_out:
        mend = f"raise policies.max_total_duration_sec, try again, or {_FILE}"
        return _Failure("timed_out", f"the planner did not answer in {asked.seconds:g} s", mend)
    report = _report(ended.stdout)
    explanation = _explanation(report) if report is not None else ""
    if ended.exit_code != 0:
        return _exited(ended, report or {}, explanation)
    if report is None:
        what = "nothing" if not ended.stdout.strip() else "something else than one JSON result"
        return _Failure("malformed", f"the planner wrote {what}")
    if report.get("is_error") is True or report.get("subtype") != "success":
        text = f"the planner gave no answer: {explanation or 'it does not say why'}"
        return _explained("refused", text, report, explanation)
    if report.get("is_error") is not False or not isinstance(report.get("result"), str):
        return _Failure("malformed", "the planner wrote a result without an answer in it")
    if report.get("num_turns") == 0:  # it took the prompt for a command of its own, and asked nobody
        return _Failure("refused", f"the planner asked no model: {explanation}", again=False)
    return report


def _exited(ended: Ended, report: dict[str, Any], explanation: str) -> _Failure:
    # The last line that commander, bubblewrap or a runtime writes says most.
    errors = _line(plain(ended.stderr, cut=False), last=True)
    if ended.exit_code is None:
        return _Failure("exited", f"the planner was killed, or could not be started: {errors or 'nothing was said'}")
    if "unknown option" in errors:
        mend = f"update it to {OLDEST} or newer (claude update), or {_FILE}"
        return _Failure("exited", f"this {PROGRAM} is too old: {errors}", mend, again=False)
    why = explanation or errors
    signal = f" (as by signal {ended.exit_code - 128})" if 128 < ended.exit_code <= 192 else ""
    text = f"the planner ended with exit code {ended.exit_code}{signal}: {why or 'it does not say why'}"
    return _explained("exited", text, report, why)


def _explained(code: PlannerFailure, text: str, report: dict[str, Any], explanation: str) -> _Failure:
    """A failure that the program gives words for."""
    status = report.get("api_error_status")
    if status in (401, 403) or any(words in explanation.lower() for words in _NO_LOGIN):
        mend = f"log in (start claude, then /login) or set ANTHROPIC_API_KEY, or {_FILE}"
        return _Failure(code, text, mend, again=False)
    lasting = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
    return _Failure(code, text, again=not lasting)


def _report(raw: bytes) -> dict[str, Any] | None:
    """The result object in what it wrote, which must be JSON as a whole."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[-1]
    return value if isinstance(value, dict) and value.get("type") == "result" else None


def _explanation(report: dict[str, Any]) -> str:
    """The explanation in a result object, for people."""
    errors = report.get("errors")
    texts = [report.get("result"), *(errors if isinstance(errors, list) else []), report.get("subtype")]
    first = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return _line(plain(first.encode(), cut=False))


def _line(text: str, *, last: bool = False) -> str:
    """The text in one line, bounded; of a long one the beginning, or its ``last`` part."""
    words = " ".join(text.split())
    most = REASON_CHARS_MAX - 100
    if len(words) <= most:
        return words
    return f"…{words[-most:]}" if last else f"{words[:most]}…"


_COUNTED: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _tokens(usage: Any) -> int | None:
    """All tokens that were read, written or found in a cache; None where it does not tell them so that they can be
    added."""
    if not isinstance(usage, dict) or "input_tokens" not in usage or "output_tokens" not in usage:
        return None
    counts: list[int] = [usage[name] for name in _COUNTED if usage.get(name) is not None]
    if any(type(count) is not int or not 0 <= count <= COUNT_MAX for count in counts) or sum(counts) > COUNT_MAX:
        return None
    return sum(counts)


def _dollars(cost: Any) -> float | None:
    """US dollars as told; None where that is no amount."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    amount = float(cost) if abs(cost) <= COUNT_MAX else math.inf
    return amount if math.isfinite(amount) and amount >= 0 else None
