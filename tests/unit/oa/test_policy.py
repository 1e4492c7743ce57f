"""The mode table, literally (docs/design.md §12.2)."""

from __future__ import annotations

from pmagent.actors.oa.policy import ACTIONS, allows, interpret
from pmagent.contracts.kernel import Mode, Reason
from tests.support.cases import each

WORK = ["feature_work", "ops_blocks", "migrations", "phase_transitions"]


@each("mode, allowed, forbidden", [
    ("NORMAL", WORK, []),
    ("DEGRADED", ["remediation", "diagnostic"], WORK),
    ("BLOCKED", ["diagnostic"], [*WORK, "remediation"]),
])
def test_the_table(mode: Mode, allowed: list[str], forbidden: list[str]) -> None:
    said = interpret(mode, [])
    assert (said.allowed_actions, said.forbidden_actions) == (allowed, forbidden)
    assert all(allows(mode, action) for action in allowed)
    assert not any(allows(mode, action) for action in forbidden)


def test_a_worse_mode_never_allows_more() -> None:
    for action in ACTIONS:
        granted = [allows("NORMAL", action), allows("DEGRADED", action), allows("BLOCKED", action)]
        assert granted == sorted(granted, reverse=True)


@each("mode", ["NORMAL", "DEGRADED", "BLOCKED"])
@each("action", ["", "deploy", "Diagnostic", "diagnostic ", "*"])
def test_an_unknown_action_is_forbidden(mode: Mode, action: str) -> None:
    assert not allows(mode, action)


def test_each_way_to_mend_is_recommended_once() -> None:
    pairs = [("a", "b"), ("c", "b"), ("d", "a"), ("e", "")]
    reasons = [Reason(code=code, mode="DEGRADED", text=code, mend=mend) for code, mend in pairs]
    assert interpret("DEGRADED", reasons).recommended_commands == ["b", "a"]
