"""Values that cannot be changed any more, and the checks on the way in and out."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from pmagent.contracts.reasoning import ShapeError
from pmagent.oa import reasoning_bridge as bridge
from pmagent.oa.reasoning_bridge import (
    EnvelopeError,
    FrozenDict,
    FrozenList,
    ReasoningEnvelope,
    ResultError,
    checked_envelope,
    checked_result,
    freeze,
    new_envelope,
)
from tests.support.cases import each

ENVELOPE: dict[str, Any] = {
    "envelope_id": "3f0c8a52-1111-4c2e-9f4b-0123456789ab",
    "timestamp": "2026-11-21T12:00:00Z",
    "program_id": "SafeOPSDecision",
    "goal": "Add a page to the manual",
    "kernel_state_ref": {
        "mode": "NORMAL", "bootstrap": {"branch": "main", "surfaces": [None, {"a": [1]}]},
        "ssot_index": {"current_phase": "27"}, "reality_summary": {"reality_green": True, "checks": []}, "oa_state": {},
    },
    "oa_context": {"constraints": ["no_git_push"], "deep": {"er": [{"est": 1}]}},
    "tools_allowed": ["oa.kernel_status", "oa.reality_summary"],
}
RESULT: dict[str, Any] = {
    "envelope_id": ENVELOPE["envelope_id"],
    "program_id": "SafeOPSDecision",
    "status": "OK",
    "decision": {"allowed_action": "PROCEED", "safety_check_summary": "fine"},
    "rationale": "all is green",
    "tool_calls": [
        {"tool_id": "oa.kernel_status", "args": {}, "digest": "0" * 64, "at": "2026-11-21T12:00:00.250000Z", "ok": True}
    ],
    "diagnostics": [
        {"type": "issue", "category": "engine", "severity": "info", "message": "the rules answered",
         "details": {"engine": "rules"}, "remediation": None}
    ],
}

MUTATIONS: dict[str, Callable[[Any], Any]] = {
    "dict.__setitem__": lambda value: value.__setitem__("a", 2),
    "dict.__delitem__": lambda value: value.__delitem__("a"),
    "dict.update": lambda value: value.update(a=2),
    "dict.__ior__": lambda value: value.__ior__({"a": 2}),
    "dict.pop": lambda value: value.pop("a"),
    "dict.popitem": lambda value: value.popitem(),
    "dict.setdefault": lambda value: value.setdefault("z", 2),
    "dict.clear": lambda value: value.clear(),
    "dict.attribute": lambda value: setattr(value, "extra", 1),
    "dict.class": lambda value: setattr(value, "__class__", dict),
    "list.__setitem__": lambda value: value["l"].__setitem__(0, 2),
    "list.slice": lambda value: value["l"].__setitem__(slice(None), []),
    "list.__delitem__": lambda value: value["l"].__delitem__(0),
    "list.append": lambda value: value["l"].append(2),
    "list.extend": lambda value: value["l"].extend([2]),
    "list.__iadd__": lambda value: value["l"].__iadd__([2]),
    "list.__imul__": lambda value: value["l"].__imul__(2),
    "list.insert": lambda value: value["l"].insert(0, 2),
    "list.pop": lambda value: value["l"].pop(),
    "list.remove": lambda value: value["l"].remove(1),
    "list.clear": lambda value: value["l"].clear(),
    "list.sort": lambda value: value["l"].sort(),
    "list.reverse": lambda value: value["l"].reverse(),
}


@each("change", MUTATIONS.values())
def test_every_way_to_change_a_frozen_value_is_refused(change: Callable[[Any], Any]) -> None:
    plain = {"a": 1, "l": [3, 1, 2]}
    value = freeze(plain)
    with pytest.raises(TypeError, match=r"is frozen: take a copy"):
        change(value)
    assert value == plain


def test_every_method_that_changes_a_plain_dict_or_list_is_refused() -> None:
    """Also one that a later Python adds: what a frozen class does not override must not change anything."""
    for kind, refused in ((dict, FrozenDict), (list, FrozenList)):
        harmless = {"__class__", "__init_subclass__", "__new__", "__init__", "__getattribute__"}
        changing = {"update", "append", "extend", "insert", "remove", "pop", "popitem", "clear", "sort", "reverse",
                    "setdefault", "__setitem__", "__delitem__", "__ior__", "__iadd__", "__imul__"}
        reading = {
            "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getitem__", "__iter__",
            "__len__", "__repr__", "__reversed__", "__sizeof__", "__or__", "__ror__", "__add__", "__mul__", "__rmul__",
            "__class_getitem__", "copy", "fromkeys", "get", "items", "keys", "values", "count", "index",
        }
        own = {name for name in vars(kind) if name not in harmless and name not in ("__doc__", "__hash__")}
        assert own - reading - changing == set(), "look at these"
        assert all(vars(refused)[name] is vars(refused)["__setitem__"] for name in own & changing)


def test_making_it_again_does_not_change_it() -> None:
    value, listed = freeze({"a": 1}), freeze([1])
    value.__init__({"b": 2})
    listed.__init__([2])
    assert (value, listed) == ({"a": 1}, [1])


def test_a_frozen_value_is_equal_to_the_plain_one_and_encoded_like_it() -> None:
    plain = {"z": [1, 2.5, None, True, "é"], "a": {"k": ()}}
    value = freeze(plain)
    expected = {"z": [1, 2.5, None, True, "é"], "a": {"k": []}}
    assert value == expected
    assert msgspec.json.encode(value) == msgspec.json.encode(expected)
    assert msgspec.to_builtins(value) == expected
    assert list(value) == ["z", "a"], "keys stay in order"


def test_a_copy_of_a_frozen_value_is_itself_and_a_plain_copy_can_be_changed() -> None:
    value = freeze({"a": [1]})
    assert copy.copy(value) is value
    assert copy.deepcopy(value) is value
    plain = dict(value)
    plain["a"] = 2
    plain = value.copy()
    plain["a"] = list(plain["a"])
    plain["a"].append(2)
    assert value == {"a": [1]}
    assert value | {"b": 1} == {"a": [1], "b": 1}


def test_a_frozen_value_travels_through_pickle_and_stays_frozen() -> None:
    value = freeze({"a": [1, {"b": 2}]})
    back = pickle.loads(pickle.dumps(value))
    assert back == value
    assert type(back["a"]) is FrozenList
    with pytest.raises(TypeError):
        back["a"][1]["b"] = 3


def test_what_is_put_into_the_classes_themselves_is_frozen_too() -> None:
    inner: list[int] = []
    value, listed = FrozenDict({"a": inner}), FrozenList([inner])
    inner.append(1)
    assert (value, listed) == ({"a": []}, [[]])
    assert FrozenDict([("a", 1)]) == {"a": 1}


def test_other_mappings_and_subclasses_become_plain_values() -> None:
    class Text(str):
        __slots__ = ()

    class Number(IntEnum):
        ONE = 1

    value = freeze({Text("k"): MappingProxyType({"n": Number.ONE}), "f": Text("é")})
    assert value == {"k": {"n": 1}, "f": "é"}
    assert {type(key) for key in value} == {str}
    assert type(value["k"]["n"]) is int
    assert type(value["f"]) is str


@each("value, said", [
    ({"a": {"b": {1, 2}}}, r"^a\.b is not JSON \(set\)$"),
    ({"a": [0, float("nan")]}, r"^a\[1\] is not a number"),
    ({"a": float("inf")}, "is not a number"),
    ({"a": {3: 1}}, r"^a has a key that is not text \(int\)$"),
    ({"a": "\ud800"}, r"^a is not text that JSON can hold"),
    ({"\udfff": 1}, "is not text that JSON can hold"),
    (b"x", r"^the value is not JSON \(bytes\)$"),
    ({"f": len}, "is not JSON"),
])
def test_what_is_not_json_is_refused_with_the_way_to_it(value: Any, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        freeze(value)


def test_a_value_without_an_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ShapeError, match="nested deeper than"):
        freeze(endless)


def test_a_value_that_holds_itself_over_and_over_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "VALUES_MAX", 10_000)
    wide: list[Any] = [1]
    for _ in range(40):
        wide = [wide, wide]
    with pytest.raises(ShapeError, match="holds more than 10000 values"):
        freeze(wide)


def test_an_envelope_is_frozen_through_and_through() -> None:
    given = copy.deepcopy(ENVELOPE)
    made = checked_envelope(given)
    given["kernel_state_ref"]["bootstrap"]["surfaces"][1]["a"].append(2)
    given["oa_context"]["constraints"].clear()
    given["tools_allowed"].pop()
    assert msgspec.to_builtins(made) == ENVELOPE
    for change in (
        lambda: setattr(made, "goal", "another"),
        lambda: setattr(made.kernel_state_ref, "mode", "BLOCKED"),
        lambda: made.tools_allowed.append("oa.guard.run"),
        lambda: made.oa_context["deep"]["er"][0].update(est=2),
        lambda: made.kernel_state_ref.bootstrap["surfaces"].append(1),
        lambda: made.kernel_state_ref.oa_state.update(a=1),
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()
    assert msgspec.to_builtins(made) == ENVELOPE


def test_an_envelope_and_a_result_travel_through_pickle_and_copies() -> None:
    for made in (checked_envelope(ENVELOPE), checked_result(RESULT)):
        for back in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
            assert back == made
            assert msgspec.json.encode(back) == msgspec.json.encode(made)


def test_an_envelope_that_was_put_together_by_hand_is_checked_too() -> None:
    made = checked_envelope(ENVELOPE)
    assert checked_envelope(made) == made
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    with pytest.raises(EnvelopeError, match=r"may not use oa\.guard\.run"):
        checked_envelope(ReasoningEnvelope(**{**fields, "tools_allowed": ["oa.guard.run"]}))
    with pytest.raises(EnvelopeError, match=r"oa_context\.a is not JSON \(set\)"):
        checked_envelope(ReasoningEnvelope(**{**fields, "oa_context": {"a": {1}}}))


@each(
    "change, said",
    [
        ({"goal": "  "}, "goal"), ({"goal": "\ud800"}, "goal is not text"), ({"goal": "x" * 20_000}, "goal"),
        ({"envelope_id": "7"}, "envelope_id"), ({"timestamp": "yesterday"}, "timestamp"),
        ({"program_id": "Other"}, "program_id"),
        ({"tools_allowed": ["oa.kernel_status", "oa.kernel_status"]}, "names a tool twice"),
        ({"tools_allowed": ["oa.guard.run"]}, "may not use"),
        ({"oa_context": {"a": "x" * 300_000}}, "oa_context is larger"), ({"oa_context": []}, "oa_context"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_an_envelope_that_breaks_its_contract_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(EnvelopeError, match=said) as caught:
        checked_envelope({**ENVELOPE, **change})
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, ValueError)
    assert "build_envelope" in caught.value.hint


def test_a_context_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(66):
        deep = {"d": deep}
    with pytest.raises(EnvelopeError, match="nested deeper than 64"):
        checked_envelope({**ENVELOPE, "oa_context": deep})


def test_a_result_is_frozen_and_its_documents_keep_their_types() -> None:
    made = checked_result(RESULT)
    assert msgspec.to_builtins(made) == RESULT
    assert isinstance(made.tool_calls[0], bridge.ToolCall)
    assert isinstance(made.diagnostics[0], bridge.OADiagnostic)
    with pytest.raises(TypeError):
        made.decision["allowed_action"] = "ABORT"
    with pytest.raises(TypeError):
        made.diagnostics.clear()
    with pytest.raises(TypeError):
        made.tool_calls[0].args["a"] = 1


@each("change, said", [
    ({"decision": {"allowed_action": "PROCEED"}}, "safety_check_summary"),
    ({"status": "BLOCKED"}, "permits something"),
    ({"status": "FAILED"}, "permits something"),
    ({"program_id": "OPSBlockGenerator"}, "OPSBlockGeneratorResult"),
    ({"rationale": None}, "rationale"),
])
def test_a_result_that_breaks_its_contract_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ResultError, match=said) as caught:
        checked_result({**RESULT, **change})
    assert caught.value.exit_code == 70


@each("given", [None, 1, "text", [], [("goal", "x")]])
def test_what_is_neither_a_document_nor_a_mapping_is_refused(given: Any) -> None:
    with pytest.raises(EnvelopeError, match="is neither a ReasoningEnvelope nor a mapping"):
        checked_envelope(given)
    with pytest.raises(ResultError, match="is neither a ReasoningResult nor a mapping"):
        checked_result(given)


def test_the_bridge_names_what_the_specification_names() -> None:
    for name in bridge.__all__:
        assert hasattr(bridge, name)
    assert tuple(bridge.PROGRAM_TOOLS) == bridge.PROGRAM_IDS
    assert {kind.__name__ for kind in bridge.PAYLOADS.values()} <= set(bridge.__all__)


@each("slipped", [{1, 2}, object(), float("nan"), "itself"])
def test_what_was_slipped_into_a_frozen_dict_is_found_when_it_is_checked(slipped: object) -> None:
    envelope = checked_envelope(ENVELOPE)
    dict.__setitem__(envelope.oa_context, "x", envelope.oa_context if slipped == "itself" else slipped)
    with pytest.raises(EnvelopeError, match=r"oa_context\.x"):
        checked_envelope(envelope)


def test_what_makes_no_envelope_is_told_to_who_made_it_in_other_words_than_to_who_sends_one() -> None:
    wrong = {**ENVELOPE, "goal": ""}
    with pytest.raises(EnvelopeError, match="this is no envelope") as sent:
        checked_envelope(wrong)
    with pytest.raises(EnvelopeError, match="no envelope can be made of this") as made:
        new_envelope(wrong)
    assert "build_envelope" in sent.value.hint
    assert "build_envelope" not in made.value.hint
