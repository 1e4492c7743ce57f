"""The rules agree with labelled examples, and what the labels say cannot reach them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.reasoning_examples import agreement, answered, main
from benchmarks.recorded_examples import example, parts, read_examples
from pmagent.contracts.reasoning import PROGRAM_IDS
from tests.support.cases import each
from tests.support.labelled import FORMS, OTHERS, PHASES, SAFEOPS, run, write_examples

REAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "oa" / "examples"


def test_every_verdict_and_status_of_the_made_up_examples_is_met(tmp_path: Path) -> None:
    examples, unread = read_examples(write_examples(tmp_path))
    assert not unread
    found = agreement(examples)
    assert set(found) == set(PROGRAM_IDS)
    safe, phases = found["SafeOPSDecision"], found["PhaseTransitionValidator"]
    assert safe.verdict.compared == len(SAFEOPS) + 5
    assert phases.verdict.compared == len(PHASES) + 2
    assert (safe.differences, phases.differences) == ({}, {})
    assert len(examples) == len(SAFEOPS) + len(PHASES) + len(OTHERS) + len(FORMS) > 40


def test_a_difference_is_counted_and_told_with_the_input_that_decided() -> None:
    row = run("Reword the notice", "OK allowed", reality_green="pass=false")
    found = agreement([example(row, "here:1")])["SafeOPSDecision"]
    assert (found.verdict.agreed, found.verdict.compared, found.allowed.share) == (0, 1, 0.0)
    ((text, places),) = found.differences.items()
    assert places == ["here:1"]
    assert "expected PROCEED OK, answered ABORT BLOCKED: reality is not green" in text
    assert "reality_summary.reality_green is false" in text


def test_the_label_is_never_read() -> None:
    for row in (*SAFEOPS, *PHASES):
        other = copy.deepcopy(row)
        other["result"] |= {"status": "FAILED", "rationale": "no", "diagnostics": [{"message": "stale"}]}
        other["result"]["decision"] = {"allowed": not row["result"]["decision"]["allowed"], "risk_factors": ["failing"]}
        assert answered(example(row, "a")) == answered(example(other, "a"))
        assert example(row, "a").envelope == example(other, "a").envelope


def test_without_recorded_answers_only_the_kernels_status_is_played() -> None:
    row = next(row for row in SAFEOPS if row["result"]["status"] == "DEGRADED" and "recent" in json.dumps(row))
    assert example(row, "a").envelope.oa_context["evidence"]
    assert "evidence" not in example(row, "a", recorded=False).envelope.oa_context


@each("text, values, clauses", [
    ("a=1, b=true, c=x y", {"a": 1, "b": True, "c": "x y"}, []),
    ("flows=[a,b], last_run=2026-01-01T00:00:00Z", {"flows": ["a", "b"], "last_run": "2026-01-01T00:00:00Z"}, []),
    ("all is well; more, and more", {}, ["all is well", "more", "and more"]),
    ("pass=true (it flapped), checks present", {"pass": True}, ["it flapped", "checks present"]),
    ({"pass": False}, {"pass": False}, []),
    ("", {}, []),
    (None, {}, []),
])
def test_texts_of_key_values_are_read_part_by_part(text: Any, values: dict[str, Any], clauses: list[str]) -> None:
    assert parts(text) == (values, clauses)


def test_the_benchmark_prints_programs_and_what_it_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_examples(tmp_path)
    odd = run("x", "OK allowed")
    odd["envelope"]["goal"] = None
    odd["result"]["tool_calls"] = [3]
    broken = ['{"envelope": {}, "result": {}}', "not json", "[]", "", '{"input": {}}', json.dumps(odd)]
    (tmp_path / "broken.jsonl").write_text("\n".join(broken))
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    told = [
        f"{len(SAFEOPS) + len(PHASES) + len(OTHERS) + len(FORMS)} examples, 5 lines that are none",
        "broken.jsonl:1: there is no program None", "broken.jsonl:3: not an object",
        "broken.jsonl:6: a part of it has another type", f"SafeOPSDecision: {len(SAFEOPS) + 5} examples",
        "others.jsonl:2: expected OK, answered BLOCKED",
    ]
    for line in told:
        assert line in printed


def test_a_folder_without_examples_is_a_named_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert main([str(folder)]) == 2
        assert str(folder) in capsys.readouterr().err


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded examples are not on this machine")
def test_the_recorded_examples_are_met_by_nine_in_ten() -> None:
    examples, unread = read_examples(REAL)
    assert not unread
    found = agreement(examples)
    for program in ("SafeOPSDecision", "PhaseTransitionValidator"):
        assert found[program].verdict.compared >= 10
        assert found[program].verdict.share >= 0.9
        assert found[program].allowed.share >= 0.9
    for one in examples:
        assert msgspec.json.encode(answered(one)) == msgspec.json.encode(answered(one))
