"""Rubrics as people publish them become rubrics of this program, and each assumption is told."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pmagent.actors.audit.rubric import BadRubric, Rubric, read_rubric
from pmagent.actors.audit.rubric_convert import convert_rubric


def converted(document: Any) -> tuple[Rubric, list[str]]:
    made, told = convert_rubric(json.dumps(document).encode(), "theirs.json")
    return read_rubric(msgspec.json.encode(made), "mine.json"), told


def test_levels_other_spellings_and_targets_are_understood_and_told() -> None:
    rubric, told = converted({
        "criteria": [
            {"title": "Graph wiring", "description": "Is there a fan-out?", "artifact": "source code",
             "levels": {"1": "A linear flow.", "5": "Two fan-outs with joins."}},
            {"title": "Graph wiring", "description": "Again?", "artifact": "The PDF report",
             "levels": [{"points": 0, "label": "None."}, {"points": 10, "label": "All."}]},
            {"id": "demo", "name": "Demo", "target_artifact": "manual", "description": "Was it fun?"},
        ]
    })  # fmt: skip
    first, second = rubric.dimensions
    assert (first.id, first.target_artifact) == ("graph_wiring", "github_repo")
    assert (first.success_pattern, first.failure_pattern) == ("Two fan-outs with joins.", "A linear flow.")
    assert (second.id, second.target_artifact, second.success_pattern) == ("graph_wiring_2", "pdf_report", "All.")
    assert "/criteria/2 is left out: 'manual' is nothing that can be looked at here" in told
    assert "/criteria/0/title is taken for name" in told
    assert any(one.startswith("synthesis_rules/security_override: ") for one in told)


def test_a_rubric_of_this_program_stays_as_it_is() -> None:
    rules = ("security_override", "fact_supremacy", "functionality_weight", "dissent_requirement",
             "variance_re_evaluation")  # fmt: skip
    document = {
        "rubric_metadata": {"rubric_name": "x"},
        "dimensions": [{"id": "a", "name": "A", "target_artifact": "github_repo", "forensic_instruction": "Look.",
                        "success_pattern": "Good.", "failure_pattern": "Bad.", "weight": 3}],
        "synthesis_rules": dict.fromkeys(rules, "so"),
    }  # fmt: skip
    assert convert_rubric(json.dumps(document).encode(), "x") == (document, [])


@pytest.mark.parametrize("document", [{}, 1, {"criteria": "all"}, "text"])
def test_where_no_criterion_can_be_told_it_is_refused(document: Any) -> None:
    with pytest.raises(BadRubric, match="there is no list of criteria"):
        convert_rubric(json.dumps(document).encode(), "theirs.json")


def test_a_refusal_lists_every_fault_and_names_the_way_out() -> None:
    document = {"rubric_metadata": {}, "dimensions": [{"id": "a", "target_artifact": "manual"}], "synthesis_rules": {}}
    with pytest.raises(BadRubric) as refused:
        read_rubric(json.dumps(document).encode(), "mine.json")
    told = refused.value.facts["faults"].split("\n")
    assert len(told) == 10
    assert any(one.startswith("/dimensions/0/target_artifact: it is") for one in told)
    assert "pmagent rubric convert IN OUT" in refused.value.hint
    assert refused.value.message.count("\n") == len(told) - 1
