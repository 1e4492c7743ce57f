"""How old evidence is, against the envelope's own time; pure: no clock is read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.facts import REALITY_CHECK, REALITY_SUMMARY, REFRESH, Facts, mapping
from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import table, words
from pmagent.contracts.reasoning import ReasoningEnvelope

FRESH_FOR = timedelta(hours=12)
"""A working day: evidence of the day before is none any more."""
AHEAD_MAX = timedelta(minutes=5)
"""Clocks differ; evidence from further ahead was not made before the envelope."""

_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_V = table("freshness")
_UNITS = {unit: seconds for seconds, units in (
    (1.0, "seconds sec secs s"), (60.0, "minutes min mins"), (3600.0, "hours hour h hrs"), (86400.0, "days day d"),
    (604800.0, "weeks"),
) for unit in units.split()}
"""Seconds of each unit."""


class Age(msgspec.Struct, frozen=True):
    """Whether a piece of evidence is recent, and the words that say why not."""

    state: Literal["fresh", "stale", "unknown"]
    why: str = ""


def moment(value: Any) -> datetime | None:
    """The RFC 3339 time (or date) that ``value`` is; without a zone it counts as UTC. None: it is none."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value.strip()):
        return None
    text = value.strip()
    if fraction := re.search(r"\.([0-9]+)", text):
        text = text.replace(fraction[0], f".{fraction[1][:6]:0<6}")
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def age(value: Any, now: Any, where: str) -> Age:
    """The age of what was made at ``value``, at the time ``now`` (both RFC 3339); ``where`` names the input."""
    made, at = moment(value), moment(now)
    if made is None:
        return Age("stale", f"{where} is {quoted(value)}, which is no time")
    if at is None:
        return Age("stale", f"the envelope's timestamp is {quoted(now)}, which is no time")
    if made - at > AHEAD_MAX:
        return Age("stale", f"{where} is {quoted(value)}, after the envelope's {quoted(now)}")
    if at - made > FRESH_FOR:
        hours = int(FRESH_FOR.total_seconds() // 3600)
        return Age("stale", f"{where} is {quoted(value)}, more than {hours} h before the envelope's {quoted(now)}")
    return Age("fresh")


def of_reality(envelope: ReasoningEnvelope, facts: Facts) -> Age:
    """The age of the reality summary: the tools' where they told one, else the envelope's; the worse of both."""
    sources = [
        (f"{tool}.timestamp", answer.get("timestamp"))
        for tool in (REALITY_SUMMARY, REALITY_CHECK)
        for answer in facts.results.get(tool, [])
    ]
    sources.append(("reality_summary.timestamp", envelope.kernel_state_ref.reality_summary.get("timestamp")))
    stated = [(where, value) for where, value in sources if value is not None]
    if not stated:
        return Age(
            "unknown", f"the reality summary has no timestamp: how old it is cannot be told; {REFRESH} writes one"
        )
    ages = [age(value, envelope.timestamp, where) for where, value in stated]
    return next((found for found in ages if found.state == "stale"), ages[0])


def strict(envelope: ReasoningEnvelope) -> bool:
    """Whether the OA works in STRICT (``oa_state.mode``, or the same in its context): there, stale evidence is none."""
    state = envelope.kernel_state_ref.oa_state
    modes = (state.get("mode"), mapping(state.get("oa_context")).get("mode"))
    return any(isinstance(mode, str) and mode.strip().upper() == "STRICT" for mode in modes)


def stale_key(key: str, value: Any, now: Any, where: str) -> str:
    """The age that a key of a check's result states, in words; "" when it says nothing, or that it is recent: a time
    ("last_run"), or an age with a unit ("age_hours": 72)."""
    named = words(key)
    if not _V.not_when.isdisjoint(named):
        return ""
    if isinstance(value, str) and named and named[-1] in _V.when and moment(value) is not None:
        return age(value, now, where).why
    unit = _UNITS.get(named[-1]) if "age" in named else None
    if unit is None or isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    hours = int(FRESH_FOR.total_seconds() // 3600)
    return f"{where} is {quoted(value)}: older than {hours} h" if value > FRESH_FOR.total_seconds() / unit else ""
