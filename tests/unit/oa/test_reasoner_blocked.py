"""The answer of a run that a BLOCKED kernel stops: why it is blocked, as far as its envelope shows it."""

from __future__ import annotations

import pytest

from pmagent.contracts.reasoning import PROGRAM_IDS
from pmagent.contracts.reasoning_events import OaToolRequested
from tests.support.oa_loop import Observe
from tests.support.reasoning import RunBench, envelope

REFUSED = [program for program in PROGRAM_IDS if program != "GuardFailureInterpreter"]


@pytest.mark.parametrize("program", REFUSED)
def test_an_envelope_that_shows_the_kernel_blocked_names_what_blocks_it_and_what_mends_it(
    bench: RunBench, observe: Observe, program: str
) -> None:
    bench.observe(observe({}))
    result = bench.run(envelope(program, mode="BLOCKED", ssot_index={}))
    assert result.status == "BLOCKED"
    assert "ssot_index is empty" in result.rationale
    assert any("pmagent init" in (one.remediation or "") for one in result.diagnostics)
    assert bench.of(OaToolRequested) == []


@pytest.mark.parametrize("program", REFUSED)
def test_an_envelope_from_before_the_kernel_was_blocked_is_answered_with_what_is_so_now(
    bench: RunBench, observe: Observe, program: str
) -> None:
    bench.observe(observe({}))
    result = bench.run(envelope(program))
    assert result.status == "BLOCKED"
    assert result.rationale == f"the kernel is BLOCKED, so {program} may not answer"
    assert any("pmagent status" in (one.remediation or "") for one in result.diagnostics)
