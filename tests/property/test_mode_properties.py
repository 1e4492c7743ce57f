"""The mode under any surfaces: it fails closed, never rises when things get worse, and agrees with the guard."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.kernel.mode import BADNESS, judge
from pmagent.actors.kernel.reader import parse
from pmagent.actors.kernel.surfaces import BOOTSTRAP, HANDOFF, NAMES, PATHS, REALITY, REQUIRED, SSOT, kernel
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa_documents import LogPlace
from pmagent.contracts.payload import decode, encode
from pmagent.oa.guards import oa_state
from pmagent.oa.guards.reading import Given
from pmagent.oa.guards.report import report
from pmagent.projections.oa.state import render, state_document
from tests.support.cases import each

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8,
)
phases = st.sampled_from(["1", "2", 1, 28, "28B", None])
verdicts = st.sampled_from([True, False])
KEYS = ["AGENTS.md Sync", "DMS Alignment", "Backup System"]


@st.composite
def kernels(draw: st.DrawFn) -> Contents:
    """Valid surfaces, coherent or not, green or not, with and without optional parts."""
    health: Contents = draw(st.fixed_dictionaries(
        {}, optional={"reality_green": verdicts, "agents_sync_ok": verdicts, "dms_alignment_ok": verdicts}
    ))
    checks = [
        {"name": name, "passed": draw(verdicts), "message": ""}
        for name in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4))
    ]
    contents: Contents = {
        BOOTSTRAP: {"branch": draw(st.sampled_from(["main", "x/y"])), "meta": {"current_phase": draw(phases)}},
        SSOT: {"current_phase": draw(phases.filter(lambda phase: phase is not None))},
        REALITY: {"reality_green": draw(verdicts), "checks": checks},
    }
    if health:
        contents[BOOTSTRAP]["health"] = health
    if draw(st.booleans()):
        contents[HANDOFF] = {"mode": draw(st.sampled_from(["NORMAL", "DEGRADED", "BLOCKED", None]))}
    return contents


def mode(observation: KernelObserved) -> str:
    return judge(observation.surfaces).mode


def worsened(contents: Contents, how: int) -> Contents:
    """The same kernel with one thing worse."""
    worse = copy.deepcopy(contents)
    if how == 0:
        worse[REALITY]["checks"].append({"name": "one more", "passed": False, "message": ""})
    elif how == 1:
        worse[REALITY]["checks"].append({"name": "one more", "passed": True})
    elif how == 2:
        worse[HANDOFF] = {"mode": "BLOCKED"}
    elif how == 3:
        worse[BOOTSTRAP] = {}
    elif how == 4:
        del worse[SSOT]
    else:
        worse[HANDOFF] = b"{"
    return worse


@given(contents=kernels(), how=st.integers(0, 5))
def test_making_something_worse_never_makes_the_mode_better(contents: Contents, how: int, observe: Observe) -> None:
    assert BADNESS[mode(observe(worsened(contents, how)))] >= BADNESS[mode(observe(contents))]


@given(contents=kernels(), name=st.sampled_from(sorted(REQUIRED)), data=st.data())
def test_a_cut_required_surface_blocks(contents: Contents, name: str, data: st.DataObject, observe: Observe) -> None:
    raw = json.dumps(contents[name]).encode()
    contents[name] = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert mode(observe(contents)) == "BLOCKED"


@given(contents=kernels(), content=anything, name=st.sampled_from(sorted(REQUIRED)))
def test_a_required_surface_is_valid_or_blocks(contents: Contents, content: Any, name: str, observe: Observe) -> None:
    contents[name] = content
    observation = observe(contents)
    judged = judge(observation.surfaces)
    fault = name in kernel(observation.surfaces).faults
    assert judged.complete is not fault
    assert not fault or judged.mode == "BLOCKED"


@given(raw=st.binary(max_size=60), name=st.sampled_from(NAMES))
def test_no_bytes_break_reading_judging_or_logging(raw: bytes, name: str, observe: Observe) -> None:
    status, _, content = parse(name, raw)
    assert (content is None) or status == "ok"
    observation = observe({name: raw})
    assert judge(observation.surfaces).mode == "BLOCKED"
    assert decode("kernel.observed", encode(observation)) == observation


@given(contents=kernels())
def test_normal_means_that_nothing_speaks_against_it(contents: Contents, observe: Observe) -> None:
    judged = judge(observe(contents).surfaces)
    assert (judged.mode == "NORMAL") == (not judged.reasons)
    if judged.mode == "NORMAL":
        assert contents[REALITY]["reality_green"] is True
        assert all(check["passed"] for check in contents[REALITY]["checks"])
        assert contents[BOOTSTRAP].get("health", {}).get("reality_green", True) is True


@given(contents=kernels())
def test_guard_and_mode_agree_on_whether_the_kernel_is_coherent(contents: Contents, observe: Observe) -> None:
    """After a fresh snapshot the guard fails exactly when the mode has an incoherence among its reasons."""
    observation = observe(contents)
    document = state_document(observation, "2026-11-21T18:00:00.000000Z", LogPlace(log_id="", position=1, sum=""))
    assert document is not None
    state = json.loads(render(document))
    given_files = Given(Path("/w"), observation, kernel(observation.surfaces), state, "", [])
    incoherent = [reason for reason in judge(observation.surfaces).reasons if reason.code.startswith("incoherent_")]
    answer = report(oa_state.check(given_files), "STRICT")
    assert answer.ok == (not incoherent)
    assert len(answer.mismatches) == len(incoherent)


@each("name", NAMES)
def test_every_surface_has_a_path(name: str) -> None:
    assert PATHS[name].startswith("share/")
