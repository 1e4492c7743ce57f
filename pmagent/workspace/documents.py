"""The surfaces that pmagent writes, computed from those that are there; pure.

All are computed before any is written, the bootstrap's health from the very reality summary that goes with
it, and no check looks at what is derived from them (STATE.json). So nothing lags behind, and one run is
enough.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, KEY_CHECKS, PATHS, REALITY, SSOT

Content = dict[str, Any]

GENERATOR = "pmagent kernel refresh"
BOOTSTRAP_VERSION = "2026-11-21"
CONFIGURED = ".pmagent/config.toml"
"""``details.source`` of a check that this file configures. One that it does not configure any more is forgotten:
whoever may write it has said so."""
OA_STATE_CHECK = "OA State"
"""Another generator's check of STATE.json; kept, it would hold the kernel to a document that follows it."""


class Inputs(msgspec.Struct, frozen=True):
    """The inputs of the surfaces. ``checks`` are the verdicts of the built-in guards and of the
    configured checks, in the form of the reality summary's checks; ``now`` is RFC 3339 UTC; ``ssot_path`` is
    where the SSOT surface lies or is to lie."""

    branch: str
    phase: str
    last_completed: str | None
    checks: list[Content]
    now: str
    ssot_path: str


def documents(old: dict[str, Content], given: Inputs) -> dict[str, Content]:
    """Surface name -> new content, in the order in which they are to be written.

    ``old`` holds the surfaces that are there; what pmagent does not compute is kept in them. The reality
    summary comes last but one and the bootstrap last: until then, a reader sees the old bootstrap contradict
    the new summary, which is DEGRADED, never better than the truth.
    """
    reality = _reality(old.get(REALITY, {}), given)
    made = {
        SSOT: _ssot(old.get(SSOT, {}), given),
        HANDOFF: _handoff(old.get(HANDOFF, {}), given, reality),
        REALITY: reality,
        BOOTSTRAP: _bootstrap(old.get(BOOTSTRAP, {}), given, reality),
    }
    return made if CONTEXT in old else {CONTEXT: _context()} | made


def _reality(old: Content, given: Inputs) -> Content:
    """Checks that pmagent cannot repeat are kept with their verdicts: to forget a failed one would be to pass
    it."""
    own = {check["name"] for check in given.checks} | {OA_STATE_CHECK}
    listed = old.get("checks")
    kept = [_kept(check) for check in (listed if isinstance(listed, list) else []) if _is_named(check)]
    others = (check for check in kept if check["name"] not in own and not _was_configured(check))
    checks = [*others, *given.checks]
    green = all(check["passed"] is True for check in checks)
    return old | {"reality_green": green, "checks": checks, "timestamp": given.now[:19] + "Z"}


def _is_named(check: Any) -> bool:
    return isinstance(check, dict) and isinstance(check.get("name"), str) and bool(check["name"])


def _was_configured(check: Content) -> bool:
    return _object(check, "details").get("source") == CONFIGURED


def _kept(check: Content) -> Content:
    """A verdict that is neither true nor false is none that anybody could rely on."""
    passed = check.get("passed")
    return check | {"passed": passed if isinstance(passed, bool) else False}


def _ssot(old: Content, given: Inputs) -> Content:
    phases = _object(old, "phases") | {"current": _number(given.phase)}
    new: Content = {"version": _version(given.ssot_path)} | old
    new |= {"generated_by": GENERATOR, "generated_at": given.now, "current_phase": given.phase}
    if given.last_completed is not None:
        phases["last_completed"] = _number(given.last_completed)
        new["last_completed_phase"] = given.last_completed
    return new | {"phases": phases}


def _handoff(old: Content, given: Inputs, reality: Content) -> Content:
    was = _object(old, "health")
    wanted = list(dict.fromkeys([*_object(was, "checks"), *(check["name"] for check in given.checks)]))
    verdicts = {name: verdict for name in wanted if (verdict := _verdict(reality, name)) is not None}
    notes = _object(old, "notes") | {"generated_at": given.now, "reality_green_summary": PATHS[REALITY]}
    return {
        **({"version": 1} | old), **_phases(given), "branch": given.branch,
        "health": was | {"reality_green": reality["reality_green"], "checks": verdicts},
        "required_surfaces": [PATHS[BOOTSTRAP], given.ssot_path], "notes": notes,
    }


def _bootstrap(old: Content, given: Inputs, reality: Content) -> Content:
    meta = _object(old, "meta") | _phases(given)
    health = _bools(_object(old, "health")) | {"reality_green": reality["reality_green"], "source": PATHS[REALITY]}
    for name, key in KEY_CHECKS.items():
        if (verdict := _verdict(reality, name)) is not None:
            health[key] = verdict
    if "dms_share_alignment" in meta and "dms_alignment_ok" in health:
        meta["dms_share_alignment"] = "OK" if health["dms_alignment_ok"] else "BROKEN"
    surfaces = _object(old, "surfaces") | {SSOT: given.ssot_path}
    return {
        **({"version": BOOTSTRAP_VERSION} | old), "branch": given.branch, "generated_at_utc": given.now,
        "health": health, "meta": meta, "surfaces": surfaces,
    }


def _context() -> Content:
    empty: Content = {
        "active_goal": None, "kernel_mode": None, "constraints": [], "pending_ops_blocks": [], "session_metadata": {},
    }
    return {"version": 1, "context": empty}


def _object(old: Content, key: str) -> Content:
    value = old.get(key)
    return value if isinstance(value, dict) else {}


def _bools(health: Content) -> Content:
    """Without repeated verdicts that are none."""
    keys = KEY_CHECKS.values()
    return {key: value for key, value in health.items() if key not in keys or isinstance(value, bool)}


def _phases(given: Inputs) -> Content:
    phases = {"current_phase": given.phase}
    return phases | ({"last_completed_phase": given.last_completed} if given.last_completed is not None else {})


def _verdict(reality: Content, name: str) -> bool | None:
    verdicts = [check.get("passed") for check in reality["checks"] if check.get("name") == name]
    known = [verdict for verdict in verdicts if isinstance(verdict, bool)]
    return all(known) if known else None


def _number(phase: str) -> int | str:
    """Readers of ``phases`` expect a number where the phase is one."""
    return int(phase) if phase.isascii() and phase.isdigit() and len(phase) < 10 else phase


def _version(ssot_path: str) -> int:
    match = re.search(r"_V([0-9]+)\.json", ssot_path)
    return int(match[1]) if match else 17


def encoded(content: Content) -> bytes:
    """The content of a surface file."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
