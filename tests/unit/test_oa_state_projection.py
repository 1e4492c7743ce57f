"""STATE.json as a function of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, PATHS, REALITY, REQUIRED, SSOT
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa_documents import StateDocument
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Event, LogCreated
from pmagent.projections.oa.state import PATH, OaState, OaStateView
from tests.support.cases import each

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]
TIME = "2026-11-21T18:00:00.000000Z"


def event(position: int, payload: msgspec.Struct) -> Event:
    return Event(position, TIME, "x", "fact", "kernel", type_of(payload), "", 0, payload, encode(payload))


def rendered(state: OaStateView) -> dict[str, bytes]:
    found = {path: part.content() for path, part in OaState().documents(state, None).items()}
    return {path: content for path, content in found.items() if isinstance(content, bytes)}


def after(*payloads: msgspec.Struct) -> OaStateView:
    projection, state = OaState(), OaState().initial()
    for position, payload in enumerate(payloads, 1):
        state = projection.evolve(state, event(position, payload), f"{position:064x}")
    return state


CREATED = LogCreated(log_id="ab" * 16)


def test_there_is_no_document_before_the_first_valid_observation(green: Contents, observe: Observe) -> None:
    assert rendered(after(CREATED)) == {}
    del green[SSOT]
    assert rendered(after(CREATED, observe(green))) == {}


def test_the_document_says_what_the_surfaces_say(green: Contents, observe: Observe) -> None:
    (content,) = rendered(after(CREATED, observe(green, existing=["share/kb_registry.json"]))).values()
    said = msgspec.json.decode(content)
    assert list(said) == [
        "version", "source", "generated_at", "branch", "current_phase", "last_completed_phase", "reality_green",
        "checks_summary", "dms_hint_summary", "surfaces", "surface_status", "oa_context", "oa_tools",
        "reasoning_bridge", "log",
    ]
    assert said["branch"] == "main"
    assert said["current_phase"] == "1"
    assert said["last_completed_phase"] == "0"
    assert said["reality_green"] is True
    assert said["generated_at"] == TIME
    assert said["checks_summary"][0] == {"name": "AGENTS.md Sync", "passed": True}
    assert said["dms_hint_summary"] == {"total_hints": 3, "flows_with_hints": 2}
    assert said["surfaces"]["ssot_surface"] == PATHS[SSOT]
    assert said["surface_status"] == {name: name == "kb_registry" for name in said["surfaces"]}
    assert said["oa_context"]["active_goal"] == "Draw the circuit of the first lamp"
    assert len(said["oa_tools"]["tools"]) == 7
    assert len(said["reasoning_bridge"]["programs"]) == 4
    assert said["log"] == {"log_id": CREATED.log_id, "position": 2, "sum": f"{2:064x}"}
    assert content.endswith(b"}\n")
    assert b'\n  "branch"' in content


@each("name", sorted(REQUIRED))
def test_an_incomplete_observation_leaves_the_document_as_it_was(name: str, green: Contents, observe: Observe) -> None:
    first = after(CREATED, observe(green))
    green[name] = b"{"
    assert after(CREATED, observe(green | {}), observe(green)).document is None
    assert OaState().evolve(first, event(3, observe(green)), "f" * 64) == first


def test_absent_hints_context_and_phase_are_null_or_empty_not_invented(green: Contents, observe: Observe) -> None:
    del green[CONTEXT], green[SSOT]["last_completed_phase"], green[SSOT]["phases"]
    green[REALITY]["checks"] = [{"name": "DMS Hint Registry", "passed": None, "details": "3 hints"}]
    document = after(CREATED, observe(green)).document
    assert document is not None
    assert document.last_completed_phase is None
    assert document.oa_context == {}
    assert msgspec.to_builtins(document.dms_hint_summary) == {"total_hints": None, "flows_with_hints": None}
    assert document.checks_summary[0].passed is None


def test_what_is_not_ascii_stays_readable(green: Contents, observe: Observe) -> None:
    green[BOOTSTRAP]["branch"] = "größe-für-zwölf"
    (content,) = rendered(after(CREATED, observe(green))).values()
    assert "größe-für-zwölf".encode() in content


def test_the_document_fits_its_own_type_and_the_view_can_be_cached(green: Contents, observe: Observe) -> None:
    state = after(CREATED, observe(green))
    content = rendered(state)[PATH]
    assert msgspec.json.decode(content, type=StateDocument) == state.document
    assert msgspec.json.decode(msgspec.json.encode(state), type=OaStateView) == state


def test_a_document_that_is_as_before_is_not_given_again(green: Contents, observe: Observe) -> None:
    state = after(CREATED, observe(green))
    assert OaState().documents(state, state) == {}
    assert OaState().documents(state, OaState().initial()).keys() == {PATH}
