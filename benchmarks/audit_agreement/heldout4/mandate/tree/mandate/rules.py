"""Terms of tenancy law, as the clinic uses them. Not advice."""

from __future__ import annotations

from datetime import date, timedelta

from .records import Facts, Term


def months_later(day: date, months: int) -> date:
    year, month = divmod(day.month - 1 + months, 12)
    first = date(day.year + year, month + 1, 1)
    last = (date(first.year + first.month // 12, first.month % 12 + 1, 1) - timedelta(days=1)).day
    return first.replace(day=min(day.day, last))


def terms(facts: Facts) -> list[Term]:
    if facts.served_on is None:
        return []
    served = facts.served_on
    if facts.area == "termination":
        return [Term(what="objection for hardship", ends=months_later(served, 1),
                     rule="the clinic's own, earlier than the law's")]
    if facts.area == "rent increase":
        return [
            Term(what="consent or refusal", ends=months_later(served.replace(day=1), 3) - timedelta(days=1),
                 rule="end of the second month after service"),
            Term(what="special termination", ends=months_later(served.replace(day=1), 3) - timedelta(days=1),
                 rule="same day as consent"),
        ]
    if facts.area == "deposit":
        return [Term(what="first reminder", ends=served + timedelta(days=182), rule="six months to settle")]
    return []
