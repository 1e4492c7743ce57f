"""The arithmetic by which audits are measured against a reader's scores."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.audit_agreement import (
    HOME,
    Pair,
    agreement,
    always_the_mean,
    check_claims,
    main,
    projects,
    same_sentence,
    scores_of,
)


def report(scores: dict[str, int], *evidence: tuple[str, str]) -> dict[str, Any]:
    found = [
        {"goal": f"{goal}: words", "found": True, "content": text, "location": "page 1"} for goal, text in evidence
    ]
    return {
        "criteria": [{"dimension_id": one, "final_score": score} for one, score in scores.items()],
        "evidence": {"report_accuracy": found, "again": found},
    }


def test_figures_of_agreement() -> None:
    figures = agreement([Pair("a", 1, 2), Pair("a", 5, 5), Pair("b", 3, 5), Pair("b", 2, None)])
    assert figures[:3] == (4, 0.25, 0.5)
    assert figures.bias == 1.0
    assert figures.correlation == pytest.approx(0.866, abs=0.001)


def test_what_does_not_vary_has_no_correlation() -> None:
    assert math.isnan(agreement([Pair("a", 3, 2), Pair("a", 3, 4)]).correlation)
    assert math.isnan(agreement([]).bias)


def test_the_mean_is_each_criterions_own() -> None:
    means = always_the_mean([Pair("a", 1, 5), Pair("a", 2, 5), Pair("b", 5, 1)])
    assert [pair.audit for pair in means] == [2, 2, 5]


def test_a_quoted_sentence_is_known_again() -> None:
    claim = "Every citation in the article is verified against the snippet before it is written."
    assert same_sentence(claim, f'p. 2: "{claim}" (deepdig/flow.py)')
    assert same_sentence(claim, "citation in the article is verified against the snippet")
    assert not same_sentence(claim, "The plan and the critique are bound to Pydantic schemas.")
    assert not same_sentence(claim, "is")


def test_claims_are_held_against_what_was_planted() -> None:
    planted = {
        "invented_paths": ["src/gone.py", "src/lost.py"],
        "claim": [
            {"kind": "false", "text": "Audits are resumed from a checkpoint."},
            {"kind": "false", "text": "Colours come from `src/gone.py`."},
            {"kind": "false", "text": "Mail is sent to everybody."},
            {"kind": "plan", "text": "We will draw diagrams soon."},
        ],
    }
    claims = check_claims(planted, report(
        {},
        ("report.contradicted", "Audits are resumed from a checkpoint."),
        ("report.contradicted", "We will draw diagrams soon."),
        ("report.contradicted", "A sentence that nobody planted."),
        ("report.hallucinated", "src/gone.py"),
    ))
    assert claims[:5] == (3, 1, 3, 2, 2)
    assert claims.missed == ["src/lost.py"]
    assert [line.split(":")[0] for line in claims.doubtful] == ["not planted", "not false"]


def test_a_failed_audit_has_no_scores() -> None:
    assert scores_of(None) == {}


def test_a_judge_like_the_reader_agrees_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for project in projects("heldout"):
        scores = tomllib.loads((project / "scores.toml").read_text("utf-8"))
        given = {one: score["score"] for one, score in scores.items() if one != "rubric" and score["score"] != "n/a"}
        false = [one["text"] for one in tomllib.loads((project / "claims.toml").read_text("utf-8"))["claim"]
                 if one["kind"] == "false"]
        (tmp_path / "heldout").mkdir(exist_ok=True)
        made = report(given, *(("report.contradicted", text) for text in false))
        (tmp_path / "heldout" / f"{project.name}.json").write_text(json.dumps({"report": made}))
    main(["--set", "heldout", "--reports", str(tmp_path)])
    (total,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("all ")]
    assert total[2:6] == ["100%", "100%", "+0.00", "1.00"]


def flat(text: str) -> str:
    return " ".join(text.replace("`", "").replace("*", "").replace("> ", "").split())


@pytest.mark.parametrize("name", ["practice", "heldout", "heldout2", "heldout3", "heldout4", "heldout5"])
def test_each_project_has_its_scores_and_its_claims_stand_in_its_report(name: str) -> None:
    for project in projects(name):
        scores = tomllib.loads((project / "scores.toml").read_text("utf-8"))
        rubric = json.loads((HOME / name / scores.pop("rubric")).read_text("utf-8"))
        assert list(scores) == [one["id"] for one in rubric["dimensions"]], project
        assert all(one["score"] in (1, 2, 3, 4, 5, "n/a") and one["why"] for one in scores.values()), project
        text = (project / "report.md").read_text("utf-8")
        claims = tomllib.loads((project / "claims.toml").read_text("utf-8"))
        assert [one for one in claims["claim"] if flat(one["text"]) not in flat(text)] == [], project
        invented = claims.get("invented_paths", [])
        assert [path for path in invented if path not in text or (project / "tree" / path).exists()] == [], project
