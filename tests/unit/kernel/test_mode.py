"""The mode of an observation, one test a condition (docs/design.md §12.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, REALITY, REQUIRED, SSOT, WORD_CHARS_MAX
from pmagent.contracts.kernel import KernelObserved
from pmagent.events.event import DATA_BYTES_MAX
from tests.support.cases import each

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]


def codes(observation: KernelObserved) -> tuple[str, list[str]]:
    """Mode and reason codes."""
    now = judge(observation.surfaces)
    return now.mode, [reason.code for reason in now.reasons]


def test_a_coherent_green_kernel_is_normal(green: Contents, observe: Observe) -> None:
    now = judge(observe(green).surfaces)
    assert (now.mode, now.reasons, now.phase, now.branch, now.complete) == ("NORMAL", [], "1", "main", True)


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "surface_missing"), (b"", "surface_not_json"), (b'{"half": ', "surface_not_json"),
        (b"\xff\xfe{}", "surface_not_utf8"), (b"[]", "surface_invalid"), (b"{}", "surface_invalid"),
    ],
)
def test_a_required_surface_that_is_missing_or_broken_blocks(
    name: str, content: bytes | None, code: str, green: Contents, observe: Observe
) -> None:
    if content is None:
        del green[name]
    else:
        green[name] = content
    assert codes(observe(green)) == ("BLOCKED", [code])


def test_nothing_at_all_blocks_and_names_every_required_surface(observe: Observe) -> None:
    now = judge(observe({}).surfaces)
    assert now.mode == "BLOCKED"
    assert [reason.code for reason in now.reasons] == ["surface_missing"] * 3
    assert (now.phase, now.branch, now.complete) == ("", "", False)
    assert judge([]).mode == "BLOCKED"


def test_a_missing_context_or_handoff_changes_nothing(green: Contents, observe: Observe) -> None:
    del green[CONTEXT], green[HANDOFF]
    assert codes(observe(green)) == ("NORMAL", [])
    green[CONTEXT] = b"{"
    assert codes(observe(green)) == ("NORMAL", [])


def test_reality_that_is_not_green_degrades(green: Contents, observe: Observe) -> None:
    green[REALITY]["reality_green"] = False
    green[BOOTSTRAP]["health"]["reality_green"] = False
    assert codes(observe(green)) == ("DEGRADED", ["reality_not_green"])


def test_a_failed_check_degrades_even_under_a_green_summary(green: Contents, observe: Observe) -> None:
    green[REALITY]["checks"][3]["passed"] = False
    mode, found = codes(observe(green))
    assert (mode, found) == ("DEGRADED", ["check_failed"])
    assert "Backup System" in judge(observe(green).surfaces).reasons[0].text


def test_a_provisional_summary_degrades(green: Contents, observe: Observe) -> None:
    green[REALITY]["checks"] = [{"name": "AGENTS.md Sync", "passed": True}]
    assert codes(observe(green)) == ("DEGRADED", ["provisional"])


@each("said", [False, None])
def test_a_bootstrap_with_another_reality_degrades(said: bool | None, green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["health"]["reality_green"] = said
    assert codes(observe(green)) == ("DEGRADED", ["incoherent_reality"])


def test_a_bootstrap_without_health_is_not_compared(green: Contents, observe: Observe) -> None:
    del green[BOOTSTRAP]["health"]
    assert codes(observe(green)) == ("NORMAL", [])


def test_a_bootstrap_with_another_phase_degrades(green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["meta"]["current_phase"] = "2"
    assert codes(observe(green)) == ("DEGRADED", ["incoherent_phase"])


def test_a_number_and_a_word_of_the_same_phase_agree(green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["meta"]["current_phase"] = 1
    assert codes(observe(green)) == ("NORMAL", [])


@pytest.mark.parametrize("key", ["agents_sync_ok", "dms_alignment_ok"])
def test_a_bootstrap_with_another_verdict_on_a_key_check_degrades(key: str, green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["health"][key] = False
    assert codes(observe(green)) == ("DEGRADED", ["incoherent_reality"])


def test_an_older_bootstraps_broken_alignment_contradicts_a_passed_check(green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["meta"]["dms_share_alignment"] = "BROKEN"
    assert codes(observe(green)) == ("DEGRADED", ["incoherent_reality"])


@each("declared, mode, code", [
    ("NORMAL", "NORMAL", []),
    ("degraded", "DEGRADED", ["declared"]),
    ("BLOCKED", "BLOCKED", ["declared"]),
    ("HOLIDAY", "BLOCKED", ["declaration_unknown"]),
])
def test_the_declared_mode_counts_if_it_is_worse(
    declared: str, mode: str, code: list[str], green: Contents, observe: Observe
) -> None:
    green[HANDOFF]["mode"] = declared
    assert codes(observe(green)) == (mode, code)


def test_a_declared_normal_does_not_lift_what_the_surfaces_show(green: Contents, observe: Observe) -> None:
    green[HANDOFF]["mode"] = "NORMAL"
    del green[SSOT]
    assert codes(observe(green)) == ("BLOCKED", ["surface_missing"])


def test_a_handoff_kernel_that_cannot_be_read_may_have_declared_blocked(green: Contents, observe: Observe) -> None:
    green[HANDOFF] = b'{"mode": "BLOC'
    assert codes(observe(green)) == ("BLOCKED", ["declaration_unreadable"])


def test_each_reason_says_what_would_mend_it(green: Contents, observe: Observe) -> None:
    green[REALITY]["checks"][0]["passed"] = False
    green[HANDOFF]["mode"] = "BLOCKED"
    del green[SSOT]
    reasons = judge(observe(green).surfaces).reasons
    assert len(reasons) == 4
    assert all(reason.mend and reason.text and reason.surfaces for reason in reasons)


def test_equal_kernels_have_equal_digests(green: Contents, observe: Observe) -> None:
    first = judge(observe(green).surfaces).digest
    assert judge(observe(green, existing=["share/kb_registry.json"]).surfaces).digest == first
    green[CONTEXT]["context"]["active_goal"] = "another"
    assert judge(observe(green).surfaces).digest != first


def test_a_summary_of_very_many_failed_checks_gives_reasons_that_fit_a_line(green: Contents, observe: Observe) -> None:
    green[REALITY] = {
        "reality_green": False,
        "checks": [{"name": f"{n}-" + "\u0001" * 900, "passed": False, "message": ""} for n in range(3000)],
    }
    now = judge(observe(green).surfaces)
    assert now.mode == "DEGRADED"
    assert "2950 further checks failed" in [reason.text for reason in now.reasons]
    assert len(msgspec.json.encode(now.reasons)) < DATA_BYTES_MAX / 2


@pytest.mark.parametrize("word", ["branch", "phase", "check"])
def test_a_word_too_long_for_a_decision_makes_its_surface_invalid(word: str, green: Contents, observe: Observe) -> None:
    long = "x" * (WORD_CHARS_MAX + 1)
    name = {"branch": BOOTSTRAP, "phase": SSOT, "check": REALITY}[word]
    green[name] |= {
        "branch": {"branch": long}, "phase": {"current_phase": long},
        "check": {"checks": [{"name": long, "passed": True, "message": ""}]},
    }[word]
    now = judge(observe(green).surfaces)
    assert (now.mode, [reason.code for reason in now.reasons]) == ("BLOCKED", ["surface_invalid"])
    assert "is longer than 1000 characters" in now.reasons[0].text
