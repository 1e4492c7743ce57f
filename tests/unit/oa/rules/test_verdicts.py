"""SafeOPSDecision answers requests as people write them as verdicts.toml says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pmagent.actors.oa.reasoning.rules.topics import done
from tests.support.cases import each
from tests.support.rules_runs import RulesRun, summary

VERDICTS: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text("utf-8"))
IMPACT = "high-impact work is allowed on conditions"


def rows(statement: str) -> list[tuple[str, str, RulesRun]]:
    """Goal, verdict and run of each goal of a statement."""
    found = []
    for row in VERDICTS[statement]:
        for verdict in row.keys() & {"PROCEED", "WARN", "ABORT"}:
            for goal in row[verdict]:
                run = RulesRun("SafeOPSDecision", goal)
                run.mode = row.get("mode", "NORMAL")
                run.context = {"constraints": row.get("constraints", [])}
                found.append((goal, verdict, run))
    return found


@each("statement", VERDICTS)
def test_each_goal_gets_its_verdict_and_a_refusal_names_the_constraint(statement: str) -> None:
    wrong = []
    for goal, verdict, run in rows(statement):
        said: Any = run.ask()
        named = verdict == "PROCEED" or all(
            one in said.payload.safety_check_summary for one in run.context["constraints"] if one != "Be kind."
        )
        if said.payload.allowed_action != verdict or not named or "phase_transitions" in said.rationale:
            wrong.append((goal, verdict, said.rationale))
    assert wrong == []


def test_high_impact_work_is_degraded_only_without_a_proven_backup() -> None:
    wrong = []
    for goal, _, run in rows(IMPACT):
        for degraded, reality in ((False, run.reality), (True, summary(checks=[]))):
            run.reality = reality
            said = run.ask()
            conditions = " ".join(d.message for d in said.diagnostics if d.category == "condition")
            told = all(word in conditions for word in ("backup", "STRICT", "acknowledges"))
            if said.degraded != degraded or not told:
                wrong.append((goal, degraded, said.diagnostics))
    assert wrong == []


def test_a_text_that_is_kept_is_written() -> None:
    kept = {
        "Document the berth plan": True, "Describe the berth plan in docs/berths.md": True,
        "Describe the berth plan": False, "List the berths": False,
    }  # fmt: skip
    orders = ("drop", "migrat")
    assert {goal: "write" in done(goal, orders, "write") for goal in kept} == kept
    assert not any("write" in done(goal, orders) for goal in kept)
