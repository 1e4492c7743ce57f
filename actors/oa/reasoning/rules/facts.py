"""The kernel as envelope and evidence show it, and whether a program may answer at all; pure.

The kernel speaks more than once: the envelope's surfaces, the tools' results of this run, and what the caller claims.
The tools are the newest, but nothing that one source says for the worse is lifted by another: mode and reality are the
worst of all. Disagreements are reported.

Several sources say the same: that a check failed, that reality is therefore not green, and that the mode is therefore
DEGRADED. Told once each, the cause comes first; a mode that a cause explains needs no words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, cast

import msgspec

from pmagent.actors.kernel.mode import BADNESS, worst
from pmagent.actors.kernel.surfaces import PATHS, REALITY
from pmagent.actors.oa.reasoning.rules.answer import Evidence, finding
from pmagent.actors.oa.reasoning.rules.commands import danger
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.contracts.kernel import Mode
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import DIAGNOSTIC_PROGRAMS, PROGRAM_TOOLS, ReasoningEnvelope

Rank = Literal[0, 1, 2]

_CAUSE: Final = 0
"""Something that explains: a failed check, a surface that is missing, one that contradicts another."""
_REALITY: Final = 1
"""A source's verdict on reality."""
_MODE: Final = 2
"""A source's mode, without a reason."""

_FAILED = re.compile(r"(?:check failed|failed check): (.+)", re.DOTALL)
_NOT_GREEN = re.compile(r"\S*: reality_green is false")


class _Reason(msgspec.Struct, frozen=True):
    rank: Rank
    key: str
    """A second reason with the same key says nothing new."""
    mode: Mode
    text: str
    mend: str


REFRESH = "pmagent kernel refresh"
STATUS = "pmagent status (it names what would mend the mode)"
INIT = "pmagent init (writes the surfaces that are missing)"

KERNEL_STATUS = "oa.kernel_status"
REALITY_SUMMARY = "oa.reality_summary"
REALITY_CHECK = "oa.reality_check"
BOOTSTRAP_STATE = "oa.bootstrap_state"
SSOT_SURFACE = "oa.ssot_surface"
GUARD_RUN = "oa.guard.run"

_SURFACES = ("bootstrap", "ssot_index", "reality_summary")
"""The parts of the kernel's state whose surfaces are required."""

_STATES = frozenset(("mode", "kernel_ok", "ok"))
"""A kernel's status that has none of these keys says nothing of how the kernel is."""

TOLD_MAX = 50
"""So many findings of one kind become diagnostics of their own."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel as all sources together show it.

    ``mode``: the worst that any says. ``green``: reality is green in every source, and said to be so at all. ``phase``
    and ``branch``: the kernel's ("" unknown). ``failed_checks``: names of checks that failed in any. ``why``: what
    keeps the mode from NORMAL or reality from green, each naming its input. ``mends``: what would mend that.
    ``diagnostics``: where sources disagree. ``results``: tool id -> its answers in this run, in order. ``unproven``:
    what each tool that the program needs and that did not answer said instead.
    """

    mode: Mode
    green: bool
    phase: str
    branch: str
    failed_checks: list[str]
    why: list[str]
    mends: list[str]
    diagnostics: list[OADiagnostic]
    results: dict[str, list[dict[str, Any]]]
    unproven: dict[str, str]

    def result(self, tool: str) -> dict[str, Any]:
        """The tool's last answer; ``{}`` when there is none."""
        return self.results[tool][-1] if tool in self.results else {}


class _Gathering:
    """Facts while they are being collected, and the reasons for them, each once."""

    def __init__(self) -> None:
        self.modes: list[Mode] = []
        self.green: list[bool] = []
        self.failed: list[str] = []
        self.diagnostics: list[OADiagnostic] = []
        self._each: list[_Reason] = []

    def mode(self, mode: Mode, why: str, mend: str) -> None:
        """Something that makes the mode ``mode``, and says why."""
        self.modes.append(mode)
        if mode != "NORMAL":
            self._add(_CAUSE, why, mode, why, mend)

    def says(self, mode: Mode, where: str, mend: str) -> None:
        """A source that says no more than the mode."""
        self.modes.append(mode)
        if mode != "NORMAL":
            self._add(_MODE, mode, mode, where, mend)

    def check_failed(self, name: str) -> None:
        """A check that failed."""
        self.failed.append(name)
        if len(self.failed) <= TOLD_MAX:
            self.reason("DEGRADED", f"failed check: {name}", f"mend what {name} checks, then: {REFRESH}")

    def reality(self, value: Any, where: str) -> None:
        """A source's verdict on reality."""
        self.green.append(value is True)
        if value is not True:
            self._add(_REALITY, quoted(value), "DEGRADED", f"{where} is {quoted(value)}", REFRESH)

    def reason(self, mode: Mode, text: str, mend: str = "") -> None:
        """A reason, perhaps in the kernel's own words; its remedy may be listed apart from it."""
        if match := _FAILED.fullmatch(text):
            self._add(_CAUSE, f"failed check: {match[1]}", "DEGRADED", f"failed check: {match[1]}", mend)
        elif _NOT_GREEN.fullmatch(text):
            self._add(_REALITY, "false", "DEGRADED", text, mend)
        else:
            self._add(_CAUSE, text, mode, text, mend)

    def remedy(self, mend: str) -> None:
        """A remedy that is listed apart from the causes."""
        self._each.append(_Reason(_CAUSE, f"mend {mend}", "NORMAL", "", mend))

    def _add(self, rank: Rank, key: str, mode: Mode, text: str, mend: str) -> None:
        known = next((n for n, one in enumerate(self._each) if (one.rank, one.key) == (rank, key)), None)
        if known is None:
            self._each.append(_Reason(rank, key, mode, text, mend))
        elif mend and not self._each[known].mend:
            self._each[known] = msgspec.structs.replace(self._each[known], mend=mend)

    def _kept(self) -> list[_Reason]:
        """The reasons in their order, without those that another one explains."""
        explained = max((BADNESS[one.mode] for one in self._each if one.rank != _MODE), default=-1)
        failed = any(one.text.startswith("failed check: ") for one in self._each)
        kept = [
            one
            for one in self._each
            if not (one.rank == _MODE and BADNESS[one.mode] <= explained)
            and not (failed and one.rank == _REALITY and one.key == "false")
        ]
        return sorted(kept, key=lambda one: one.rank)

    def texts(self) -> list[str]:
        """The reasons, what explains first."""
        return [one.text for one in self._kept() if one.text]

    def remedies(self) -> list[str]:
        """The remedies, in the same order; a step that another one ends with is left out."""
        each = list(dict.fromkeys(one.mend for one in self._kept() if one.mend))
        return [step for step in each if not any(step != other and step in other for other in each)]


def gather(envelope: ReasoningEnvelope, evidence: Sequence[Evidence] = ()) -> Facts:
    """The facts of an envelope and what the tools of its run brought. Total: it answers for any JSON in them."""
    seen = _Gathering()
    results: dict[str, list[dict[str, Any]]] = {}
    for piece in evidence:
        if isinstance(piece.result, dict):
            results.setdefault(piece.tool_id, []).append(piece.result)
    _envelope(seen, envelope)
    for tool, answers in results.items():
        for answer in answers:
            _tool(seen, tool, answer)
    _claims(seen, envelope.oa_context.get("claimed_kernel_state"))
    if all(seen.green) and seen.failed:
        seen.modes.append("DEGRADED")
    phase, branch = _place(seen, envelope, results)
    return Facts(
        mode=worst(*seen.modes), green=bool(seen.green) and all(seen.green), phase=phase, branch=branch,
        failed_checks=list(dict.fromkeys(seen.failed)), why=seen.texts(), mends=seen.remedies(),
        diagnostics=seen.diagnostics[:TOLD_MAX], results=results, unproven=_unproven(envelope, evidence, results),
    )


def _envelope(seen: _Gathering, envelope: ReasoningEnvelope) -> None:
    kernel = envelope.kernel_state_ref
    seen.says(kernel.mode, f"kernel_state_ref.mode is {kernel.mode}", STATUS)
    for name in _SURFACES if kernel.mode == "BLOCKED" else ():
        if not getattr(kernel, name):
            seen.mode("BLOCKED", f"kernel_state_ref.{name} is empty: its surface is missing or cannot be read", INIT)
    _summary(seen, kernel.reality_summary, "reality_summary")
    _bootstrap(seen, kernel.bootstrap, kernel.reality_summary.get("reality_green"), "bootstrap")


def _tool(seen: _Gathering, tool: str, answer: dict[str, Any]) -> None:
    """Mode and reality in a tool's answer; for the worse, or against the envelope."""
    match tool:
        case "oa.kernel_status":
            _kernel_status(seen, answer)
        case "oa.reality_summary":
            _summary(seen, answer, REALITY_SUMMARY)
        case "oa.reality_check":
            seen.reality(answer.get("reality_green"), f"{REALITY_CHECK}.reality_green")
            failed = answer.get("failed_checks")
            if failed not in (None, []) and not isinstance(failed, list):
                failed = ["(unreadable failed_checks)"]
            for name in failed or []:
                seen.check_failed(quoted(name))
            _provisional(seen, answer, REALITY_CHECK)
        case "oa.bootstrap_state":
            _bootstrap(seen, answer, all(seen.green), BOOTSTRAP_STATE)


def _kernel_status(seen: _Gathering, answer: dict[str, Any]) -> None:
    reported = answer.get("mode")
    if isinstance(reported, str) and reported in BADNESS:
        mode = cast(Mode, reported)
        seen.says(mode, f"{KERNEL_STATUS}.mode is {mode}", STATUS)
        for reason in listing(answer.get("reasons"))[:TOLD_MAX] if mode != "NORMAL" else []:
            seen.reason(mode, quoted(reason))
        for step in listing(mapping(answer.get("interpretation")).get("recommended_commands"))[:TOLD_MAX]:
            if isinstance(step, str) and step.strip() and mode != "NORMAL" and not danger(step).forbidden:
                seen.remedy(quoted(step))
        if seen.modes[0] != mode:
            _disagree(seen, "mode", "kernel_state_ref", seen.modes[0], KERNEL_STATUS, mode)
    elif "mode" in answer:
        seen.mode("BLOCKED", f"{KERNEL_STATUS}.mode is {quoted(reported)}, which is no mode", STATUS)
    if "reality_green" in answer:
        seen.reality(answer["reality_green"], f"{KERNEL_STATUS}.reality_green")
        if seen.green[0] != seen.green[-1]:
            _disagree(seen, "reality_green", "reality_summary", seen.green[0], KERNEL_STATUS, seen.green[-1])
    _not_ok(seen, answer, KERNEL_STATUS)


def _summary(seen: _Gathering, summary: dict[str, Any], where: str) -> None:
    seen.reality(summary.get("reality_green"), f"{where}.reality_green")
    checks = summary.get("checks", [])
    if not isinstance(checks, list):
        seen.mode("DEGRADED", f"{where}.checks is {quoted(checks)}, not a list", REFRESH)
    for check in listing(checks):
        if isinstance(check, dict) and check.get("passed") is False:
            seen.check_failed(quoted(check.get("name", "(without a name)")))
    _provisional(seen, summary, where)


def _provisional(seen: _Gathering, answer: dict[str, Any], where: str) -> None:
    if answer.get("provisional", False) is not False:
        seen.mode(
            "DEGRADED", f"{where} is provisional: its checks are not finished", f"let its run finish, or: {REFRESH}"
        )


def _bootstrap(seen: _Gathering, bootstrap: dict[str, Any], green: Any, where: str) -> None:
    _not_ok(seen, bootstrap, where)
    health = bootstrap.get("health")
    reported = health.get("reality_green") if isinstance(health, dict) else None
    if reported is False and green is True:
        why = f"{where}.health.reality_green is false, but {PATHS[REALITY]} says true"
        seen.mode("DEGRADED", why, REFRESH)
        seen.diagnostics.append(finding("tri_surface_incoherence", "error", why, REFRESH))


def _not_ok(seen: _Gathering, answer: dict[str, Any], where: str) -> None:
    for key in ("kernel_ok", "ok"):
        if answer.get(key, True) is not True:
            seen.mode("BLOCKED", f"{where}.{key} is {quoted(answer[key])}", f"mend the kernel, then: {REFRESH}")


def _claims(seen: _Gathering, claimed: Any) -> None:
    """The caller's claims of the kernel: they only ever make things worse."""
    if claimed is None:
        return
    where = "claimed_kernel_state"
    if not isinstance(claimed, dict):
        seen.diagnostics.append(finding("evidence", "warn", f"{where} is {quoted(claimed)}, not an object"))
        return
    mode, green = claimed.get("mode"), claimed.get("reality_green")
    if isinstance(mode, str) and mode in BADNESS:
        reported = worst(*seen.modes)
        seen.says(cast(Mode, mode), f"the caller claims mode {mode}", STATUS)
        if mode != reported:
            _disagree(seen, "mode", "the kernel", reported, where, mode)
    elif mode is not None:
        seen.mode("BLOCKED", f"{where}.mode is {quoted(mode)}, which is no mode", STATUS)
    if green is not None:
        was = all(seen.green)
        seen.reality(green, f"{where}.reality_green")
        if (green is True) != was:
            _disagree(seen, "reality_green", "the kernel", was, where, green)


def _place(seen: _Gathering, envelope: ReasoningEnvelope, results: dict[str, list[dict[str, Any]]]) -> tuple[str, str]:
    """The kernel's phase and branch: what the newest source says that says anything; the others are compared with
    it."""
    kernel = envelope.kernel_state_ref
    live = results.get(KERNEL_STATUS, [{}])[-1]
    ssot = results.get(SSOT_SURFACE, [{}])[-1]
    claimed = mapping(envelope.oa_context.get("claimed_kernel_state"))
    phases = [
        (f"{KERNEL_STATUS}.phase", word(live.get("phase"))),
        (f"{SSOT_SURFACE}.current_phase", _ssot_phase(ssot)),
        ("ssot_index.current_phase", _ssot_phase(kernel.ssot_index)),
        ("bootstrap.meta.current_phase", word(mapping(kernel.bootstrap.get("meta")).get("current_phase"))),
        ("claimed_kernel_state.phase", word(claimed.get("phase"))),
    ]
    branches = [
        (f"{KERNEL_STATUS}.branch", word(live.get("branch"))),
        ("bootstrap.branch", word(kernel.bootstrap.get("branch"))),
        ("claimed_kernel_state.branch", word(claimed.get("branch"))),
    ]
    return _first(seen, "phase", phases), _first(seen, "branch", branches)


def _first(seen: _Gathering, what: str, sources: list[tuple[str, str]]) -> str:
    reported = [(where, value) for where, value in sources if value]
    for where, value in reported[1:]:
        if value != reported[0][1]:
            _disagree(seen, what, *reported[0], where, value)
    if reported and reported[0][0].startswith("claimed"):
        return ""  # nobody but the caller says so
    return reported[0][1] if reported else ""


def _disagree(seen: _Gathering, what: str, one: str, this: Any, other: str, that: Any) -> None:
    message = f"{what}: {one} says {quoted(this)}, {other} says {quoted(that)}"
    seen.diagnostics.append(finding("kernel_mismatch", "warn", message, REFRESH))


def _ssot_phase(ssot: dict[str, Any]) -> str:
    return word(ssot.get("current_phase")) or word(mapping(ssot.get("phases")).get("current"))


def _unproven(
    envelope: ReasoningEnvelope, evidence: Sequence[Evidence], results: dict[str, list[dict[str, Any]]]
) -> dict[str, str]:
    """Tool id -> why there is no answer of it, for the tools of the program's table."""
    missing = {}
    for tool in PROGRAM_TOOLS[envelope.program_id]:
        if tool not in envelope.tools_allowed:
            missing[tool] = f"{tool} is not in tools_allowed"
        elif tool == KERNEL_STATUS and tool in results and not _STATES & results[tool][-1].keys():
            missing[tool] = f"{tool} does not say how the kernel is: none of {', '.join(sorted(_STATES))}"
        elif tool not in results:
            errors = [piece.error for piece in evidence if piece.tool_id == tool and piece.error]
            missing[tool] = f"{tool} failed: {quoted(errors[-1])}" if errors else f"{tool} was not called"
    return missing


def forbidden(facts: Facts, program: str) -> list[OADiagnostic]:
    """Why the program may not answer on these facts: the kernel is BLOCKED or reality is not green, and it is not one
    of the programs of the diagnostic mode (docs/design.md §13.3). Empty: it may."""
    if program in DIAGNOSTIC_PROGRAMS or (facts.green and facts.mode != "BLOCKED"):
        return []
    state = "the kernel is BLOCKED" if facts.mode == "BLOCKED" else "reality is not green"
    message = f"{state}: only {', '.join(sorted(DIAGNOSTIC_PROGRAMS))} runs; {listed(facts.why)}"
    mend = listed(facts.mends) or REFRESH
    return [finding("policy", "block", message, mend, mode=facts.mode, reality_green=facts.green), *facts.diagnostics]


def mapping(value: Any) -> dict[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """A phase or branch as a word: an integer counts as one; anything else is none ("")."""
    if isinstance(value, int) and not isinstance(value, bool):
        return quoted(value)
    return quoted(value.strip()) if isinstance(value, str) else ""
