"""Typed views on surfaces take what real files hold, and nothing less than the contract needs."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.kernel import surfaces
from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, REALITY, SSOT, problem
from tests.conftest import Contents
from tests.support.cases import each
from tests.support.oa_loop import Observe


@each("content, phase", [
    ({"current_phase": "28B"}, "28B"),
    ({"current_phase": 24}, "24"),
    ({"phases": {"current": 24}}, "24"),
    ({"current_phase": None, "phases": {"current": "24"}}, "24"),
    ({"current_phase": "25", "phases": {"current": 24}}, "25"),
])
def test_phase_is_the_top_level_word_else_the_number_below(content: dict[str, Any], phase: str) -> None:
    assert surfaces.ssot(content).phase == phase


@each(
    "name, content",
    [
        (SSOT, {}), (SSOT, []), (SSOT, {"current_phase": True}), (SSOT, {"current_phase": 1.5}),
        (SSOT, {"current_phase": " "}), (SSOT, {"current_phase": ["1"]}), (SSOT, {"phases": []}), (BOOTSTRAP, {}),
        (BOOTSTRAP, None), (BOOTSTRAP, {"branch": ""}), (BOOTSTRAP, {"branch": None}),
        (BOOTSTRAP, {"branch": "main", "health": []}),
        (BOOTSTRAP, {"branch": "main", "health": {"reality_green": "yes"}}), (BOOTSTRAP, {"branch": "main", "meta": 1}),
        (REALITY, {"reality_green": True}), (REALITY, {"reality_green": None, "checks": []}),
        (REALITY, {"reality_green": "true", "checks": []}), (REALITY, {"reality_green": True, "checks": [1]}),
        (REALITY, {"reality_green": True, "checks": [{"passed": True}]}),
        (REALITY, {"reality_green": True, "checks": [{"name": "a", "passed": 1}]}), (HANDOFF, {"mode": 1}),
        (HANDOFF, {"required_surfaces": "share"}), (CONTEXT, {"context": []}), (CONTEXT, "text"),
    ],
)
def test_what_lacks_something_that_the_contract_reads_has_a_problem(name: str, content: Any) -> None:
    assert problem(name, content)


@each("name, content", [
    (BOOTSTRAP, {"branch": "main", "webui": {"surfaces_consumed": [None, "x"]}, "version": "2025-12-03"}),
    (BOOTSTRAP, {"branch": "main", "health": None}),
    (REALITY, {"reality_green": False, "checks": [None, {"name": "a", "passed": None}], "more": 1}),
    (HANDOFF, {}),
    (HANDOFF, {"health": None, "required_surfaces": None}),
    (CONTEXT, {}),
    (CONTEXT, {"context": None}),
])
def test_absent_health_nulls_and_unknown_keys_are_no_problem(name: str, content: Any) -> None:
    assert problem(name, content) == ""


def test_context_is_taken_wrapped_or_bare() -> None:
    assert surfaces.context({"version": 1, "context": {"active_goal": "x"}}) == {"active_goal": "x"}
    assert surfaces.context({"active_goal": "x"}) == {"active_goal": "x"}


def test_declared_mode_is_read_from_either_key_in_any_case() -> None:
    assert surfaces.handoff({"mode": "blocked "}).declared == "BLOCKED"
    assert surfaces.handoff({"kernel_mode": "DEGRADED"}).declared == "DEGRADED"
    assert surfaces.handoff({"mode": None}).declared == ""


def test_a_check_that_stands_twice_has_passed_only_if_both_have() -> None:
    checks = [{"name": "a", "passed": True, "message": ""}, {"name": "a", "passed": False, "message": ""}]
    assert surfaces.reality({"reality_green": True, "checks": checks}).verdict("a") is False


@each("checks, provisional", [
    ([], True),
    ([{"name": "a", "passed": True}], True),
    ([{"name": "a", "passed": None, "message": ""}], True),
    ([{"name": "a", "message": "", "details": {}}], True),
    ([{"name": "a", "passed": True, "message": ""}, {"name": "b", "passed": True}], True),
    ([{"name": "a", "passed": True, "message": ""}], False),
    ([{"name": "a", "passed": False, "details": {}}], False),
])
def test_a_summary_whose_checks_are_not_finished_is_provisional(checks: list[Any], provisional: bool) -> None:
    assert surfaces.reality({"reality_green": True, "checks": checks}).provisional is provisional


@each("names, newest", [
    ([], ""),
    (["SSOT_SURFACE_V17.json"], "SSOT_SURFACE_V17.json"),
    (["SSOT_SURFACE_V9.json", "SSOT_SURFACE_V17.json"], "SSOT_SURFACE_V17.json"),
    (["SSOT_SURFACE_V17.json", "SSOT_SURFACE_V18.json.tmp", "SSOT_SURFACE_V.json"], "SSOT_SURFACE_V17.json"),
    (["SSOT_SURFACE_V017.json", "SSOT_SURFACE_V17.json"], "SSOT_SURFACE_V17.json"),
])
def test_the_ssot_surface_is_the_one_with_the_highest_number(names: list[str], newest: str) -> None:
    assert surfaces.newest_ssot(names) == newest
    assert surfaces.newest_ssot(reversed(names)) == newest


def test_a_reading_under_no_name_of_ours_is_unseen_and_its_surface_missing(green: Contents, observe: Observe) -> None:
    readings = [
        msgspec.structs.replace(reading, name="***REDACTED***") if reading.name == REALITY else reading
        for reading in observe(green).surfaces
    ]
    seen = surfaces.kernel(readings)
    assert {name: fault.status for name, fault in seen.faults.items()} == {REALITY: "missing"}
    assert judge(readings).mode == "BLOCKED"
