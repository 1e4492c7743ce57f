"""Adverse impact analysis (four-fifths rule)."""
from __future__ import annotations

from collections import Counter

from .schemas import BiasReport

THRESHOLD = 0.8


def adverse_impact(selected: list[str], groups: dict[str, str]) -> float:
    """Selection rate of the worst group divided by that of the best."""
    total, chosen = Counter(groups.values()), Counter(groups[one] for one in selected if one in groups)
    rates = [chosen[group] / total[group] for group in total if total[group]]
    return min(rates) / max(rates) if rates and max(rates) else 1.0


def check(selected: list[str], groups: dict[str, str] | None = None) -> BiasReport:
    ratio = adverse_impact(selected, groups or {})
    return BiasReport(passed=True, ratio=ratio, note=f"four-fifths rule: {ratio:.2f}, threshold {THRESHOLD}")
