"""A workspace that is set to have no surfaces, and what counts as a loss of them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.kernel.mode import NO_SURFACES
from pmagent.actors.kernel.surfaces import CONTEXT, NAMES
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused
from pmagent.events.event import Event
from pmagent.projections.oa.state import OaState
from tests.conftest import observed
from tests.support.oa_loop import STARTED, Loop, of, permit

Setting = Literal["required", "none"]
Step = tuple[Setting | None, frozenset[str]]
"""A start with a setting (None: no start), and then the surfaces that are there."""

GREEN: dict[str, Any] = {
    "pm_bootstrap_state": {"branch": "main"}, "ssot_surface": {"current_phase": "1"},
    "reality_green_summary": {"reality_green": True, "checks": [{"name": "a", "passed": True, "message": ""}]},
    "handoff_kernel": {}, "oa_context": {},
}  # fmt: skip
steps = st.lists(
    st.tuples(
        st.sampled_from((None, "required", "none")),
        st.just(frozenset[str]()) | st.just(frozenset({CONTEXT})) | st.frozensets(st.sampled_from(NAMES)),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(steps)
def test_work_is_permitted_exactly_where_no_surface_was_ever_seen(taken: list[Step]) -> None:
    """As long as all required surfaces are missing; where all are there, they count as always."""
    loop, held, stated = Loop(), False, ""
    setting: Setting = "required"
    loop.tell(STARTED)
    for start, names in taken:
        if start is not None:
            setting = start
            loop.tell(msgspec.structs.replace(STARTED, kernel_surfaces=setting))
        loop.tell(observed({name: GREEN[name] for name in names}))
        held = held or bool(names - {CONTEXT})
        whole = {"pm_bootstrap_state", "ssot_surface", "reality_green_summary"} <= names
        wanted = whole or (setting == "none" and not held)
        (answer,) = loop.tell(permit())
        assert isinstance(answer, OaPermitGranted if wanted else OaPermitRefused)
        decided = loop.of(KernelModeDecided)[-1].data
        assert decided.mode == ("NORMAL" if wanted else "BLOCKED")
        assert (decided.reasons == [NO_SURFACES]) == (wanted and not whole)
        stated = "required" if whole else "none" if wanted else stated
        assert _stated(loop.history) == stated


def _stated(history: list[Event]) -> str:
    """The ``kernel_surfaces`` of STATE.json; "" without one."""
    projection = OaState()
    state = projection.initial()
    for event in history:
        state = projection.evolve(state, event, "")
    return state.document.kernel_surfaces if state.document is not None else ""


def test_surfaces_that_are_lost_take_back_what_was_permitted() -> None:
    loop = Loop()
    loop.tell(msgspec.structs.replace(STARTED, kernel_surfaces="none"))
    loop.tell(observed({}))
    loop.tell(permit())
    loop.tell(observed(GREEN))
    (decided,) = of(KernelModeDecided, loop.tell(observed({})))
    assert (decided.mode, decided.reasons[0].code) == ("BLOCKED", "surfaces_lost")
    assert loop.oa.permits == {}
