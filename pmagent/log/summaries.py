"""One-line summaries of events: by type where that is known, else the first fields.

Works on the stored JSON and never fails; the line is not yet clean, the writer sees to that
(``pmagent.actors.core.lines``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pmagent.actors.areas import AREA_OF, AREAS
from pmagent.actors.core.area import lines_of
from pmagent.actors.core.lines import TEXT_MAX, Line, line, shown
from pmagent.events.event import StoredEvent
from pmagent.when import sized

_FIELDS_MAX: Final = 8
_BAD: Final = (
    "failed", "refused", "halted", "revoked", "timed_out", "interrupted", "cancelled", "escalated", "recovered",
)
_GOOD: Final = ("granted", "booted", "taken", "resumed", "created", "started")


def _not_let_in(data: dict[str, Any]) -> str:
    return f"{shown(data.get('operator_id')) or 'somebody'} was not let in: {shown(data.get('reason'))}"


def _reloaded(data: dict[str, Any]) -> str:
    if data.get("refused"):
        return f"settings not read again: {shown(data['refused'])}"
    text = f"settings read again; changed: {shown(data.get('changed')) or 'none'}"
    return text + (f"; after a restart: {shown(data['restart'])}" if data.get("restart") else "")


def _pruned(data: dict[str, Any]) -> str:
    jobs, blobs = data.get("jobs"), data.get("blobs")
    counts = [len(each) if isinstance(each, list) else 0 for each in (jobs, blobs)]
    return f"{shown(data.get('operator_id'))} gives up the documents of {counts[0]} jobs, and {counts[1]} blobs"


_CORE: Final[dict[str, Line]] = {
    "actor.halted": "{name} halted on event {input}: {error} in {place}",
    "actor.resumed": "{name} may decide again",
    "console.checked": "{operator_id} had the {what} checked: exit code {exit_code}",
    "console.passkey_added": "{operator_id} adds the passkey {by} ({reason})",
    "console.refused": _not_let_in,
    "console.signed_in": "{operator_id} signed in by {by}",
    "console.signed_out": "{operator_id} signed out",
    "control.log_adopted": "{operator_id} adopts the log in {folder}, and what is open in it ends {previous}",
    "control.pause_requested": "{operator_id} pauses effects {reason}",
    "control.paused": "effects are paused by {operator_id} since {since} {reason}",
    "control.prune_ended": "removed {blobs} blobs of {bytes} bytes, given up at {pruned}",
    "control.pruned": _pruned,
    "control.resume_requested": "{operator_id} resumes effects {reason}",
    "control.resumed": "effects start again, {held} were held; paused since {since}",
    "daemon.reloaded": _reloaded,
    "daemon.started": "pmagent {version} ({surface}), Python {python}",
    "daemon.stopped": "{reason}",
    "effect.cancel_requested": "effect {request} is to be cancelled",
    "effect.cancelled": "effect {request} cancelled: {reason}",
    "effect.failed": "effect {request} failed: {error} in {place}",
    "effect.interrupted": "effect {request} cut off ({reason}), outcome unknown",
    "effect.refused": "effect {request} refused: {reasons}",
    "effect.timed_out": "effect {request} stopped after {limit_s} s",
    "log.created": "log {log_id}",
    "log.recovered": "{cut_bytes} torn bytes cut from {segment}, kept as {kept_as}: {reason}",
    "log.taken_over": "{holder} after {previous}: {why}, epoch {epoch}",
    "request.refused": "request {request}: {name} is {reason}",
}
"""The types that belong to no area."""


def summary(event: StoredEvent) -> str:
    """The line for ``event``; unclean, bounded in length."""
    data = _decoded(event.data)
    if not isinstance(data, dict):
        return shown(data)
    blob = data.get("blob")
    if len(data) == 1 and isinstance(blob, dict):
        return _blob(blob)
    if (made := _lines(event.type.partition(".")[0]).get(event.type)) is not None:
        return line(made, data)
    return "  ".join(f"{name}={shown(value)}" for name, value in list(data.items())[:_FIELDS_MAX])[:TEXT_MAX]


@lru_cache(maxsize=64)
def _lines(family: str) -> Mapping[str, Line]:
    area = AREA_OF.get(family)
    return _CORE if area is None else lines_of(area)


def known() -> list[str]:
    """The types that have a line of their own, in alphabetical order."""
    return sorted({*_CORE, *(name for area in AREAS for name in lines_of(area))})


def is_bookkeeping(event: StoredEvent) -> bool:
    """Whether the event only tidies up: a permit that ends with its run, or an effect that its own actor takes back."""
    if event.type == "effect.cancel_requested":
        return True
    reason = _TIDIED.get(event.type)
    return reason is not None and payload(event).get("reason") == reason


_TIDIED: Final = {"oa.permit_revoked": "its run is over", "effect.cancelled": "cancel_requested"}
"""Types of events -> their reason when all went as it should."""

_OUTCOMES: Final = {"done": ("✓", "good"), "failed": ("✗", "bad"), "stopped": ("✗", "bad"), "timed_out": ("✗", "bad")}


def sign(event: StoredEvent) -> tuple[str, str]:
    """A sign, and its word: ``✗`` bad for what went wrong or was refused, ``✓`` good for what came about, ``▸``
    decision, ``•`` fact."""
    last = event.type.rsplit(".", 1)[-1]
    if event.type in ("run.ended", "daemon.stopped"):
        state = payload(event).get("state" if event.type == "run.ended" else "reason")
        if state in _OUTCOMES:
            return _OUTCOMES[state]
    if event.type in _TIDIED and is_bookkeeping(event):
        return ("▸", "decision") if event.kind == "decision" else ("•", "fact")
    if last.endswith(_BAD):
        return "✗", "bad"
    if last.endswith(_GOOD):
        return "✓", "good"
    return ("▸", "decision") if event.kind == "decision" else ("•", "fact")


def payload(event: StoredEvent) -> dict[str, Any]:
    """The event's data as decoded JSON, whatever it holds; {} where that is no object."""
    found = _decoded(event.data)
    return found if isinstance(found, dict) else {}


def _decoded(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return bytes(memoryview(raw)[:TEXT_MAX]).decode("utf-8", "replace")


def _blob(blob: dict[str, Any]) -> str:
    size = blob.get("size")
    amount = sized(size) if isinstance(size, int) and abs(size) < 1 << 62 else "?"
    return f"{amount} of {shown(blob.get('media_type'))} in blob {shown(blob.get('sha256'))[:12]}"
