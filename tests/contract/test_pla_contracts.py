"""The PLA's contracts: strict schemas, types that agree with them, and no hole of those that are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.contracts.checking import CONTRACTS, Problem, check, check_bytes, contract_of
from pmagent.contracts.generate import FIRMWARE, firmware_contract
from pmagent.contracts.payload import END
from pmagent.contracts.pla import CONTRACT_VERSION, KEYS, MIN_ACTION_DELAY_MS, TEXT_CHARS_MAX, TypeText, objections
from pmagent.contracts.pla_documents import TYPES, action_of
from pmagent.contracts.pla_moment import VISIBLE
from pmagent.contracts.pla_schemas import BASE, CONTRACT_HASH, SCHEMAS, set_hash
from tests.support.cases import each

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures" / "pla"
GIVEN = ROOT.parent / "shared" / "data" / "pla" / "fixtures"

BOUNDS_ARE_RENAMED = [
    ("missing_field", "/safety_bounds"), ("missing_field", "/safety_bounds"),
    ("schema_validation", "/safety_bounds"), ("schema_validation", "/safety_bounds"),
]  # fmt: skip
EXCEPTIONS = {
    # a proposal's bounds are max_chars and rate_limit_ms (docs/design.md §16.1)
    "valid_proposal_type_text": BOUNDS_ARE_RENAMED,
    "valid_proposal_key_combo": BOUNDS_ARE_RENAMED,
    "valid_proposal_with_credential_warning": BOUNDS_ARE_RENAMED,
    # an entry has the checksum of the one before (docs/design.md §16.8)
    "valid_session_log_proposal": [("missing_field", "")],
    # refused there too, for the mode; operator_approval is required (docs/design.md §16.1)
    "invalid_execute_wrong_mode": [("missing_field", ""), ("schema_validation", "/mode")],
    "invalid_job_status_wrong_enum": [("schema_validation", "/status")],
}
"""Where the documents that the specification came with are not what ours say. All others are."""

HOLES = {
    "payload is not tied to action_type": ["payload_of_another_action"],
    "a long text passes beside a decoy": ["long_text_with_decoy_keys", "long_text_with_decoy_button"],
    "an invalid key passes beside a text": ["text_with_an_invalid_key"],
    "two payloads at once": ["two_payloads_at_once"],
    "an unknown field in the payload": ["payload_with_unknown_field"],
    "an unknown field at the top": ["unknown_top_level_field"],
    "an empty text": ["text_empty"],
    "a key twice in a combination": ["keys_twice"],
    "a key twice in the document": ["keys_of_the_document_twice", "text_twice_in_payload"],
    "any text for a key": ["keys_free_text", "keys_upper_case"],
    "characters that are more bytes than one": ["text_not_typable", "text_of_emoji"],
    "a timestamp that is none": ["timestamp_not_a_date", "timestamp_of_no_calendar_day"],
    "an id with a newline behind it": ["id_with_trailing_newline"],
    "1.0 for an integer": ["coordinate_with_fraction_of_zero", "bounds_with_fraction_of_zero"],
    "true for an integer": ["coordinate_true"],
}
"""Faults that the schemas of the specification let pass, in proposals and executions alike."""

TYPED = ("action_proposal", "action_execute")
OTHER_HOLES = {
    "action_proposal": ["bounds_of_the_execute_contract", "rationale_missing", "mode_paused"],
    "action_execute": ["no_operator_approval", "mode_observe", "mode_suggest", "several_actions"],
    "action_decision": ["rejected_with_empty_reason", "acknowledged_by_text"],
    "session_log": [
        "event_type_system_start", "event_type_system_stop", "event_type_kill_switch_triggered", "no_previous_checksum",
        "mode_paused",
    ],
    "device_status": ["legacy_pico_status", "led_state_on", "error_of_no_code", "unknown_top_level_field"],
    "hello": ["without_contract_version", "without_contract_hash", "armed_at_once"],
    "job_status": [
        "error_while_running", "progress_more_than_all", "artifacts_and_public_root", "no_service_and_no_time",
        "result_while_running",
    ],
    "job_manifest": ["public_root_leads_out", "updated_at_missing"],
}  # fmt: skip


def places(problems: list[Problem]) -> list[tuple[str, str]]:
    return sorted((problem.kind, problem.pointer) for problem in problems)


def parts(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, by its place."""
    if isinstance(schema, dict):
        yield path, schema
        for key, inner in schema.items():
            if key == "properties":
                for name, one in inner.items():
                    yield from parts(one, f"{path}/{name}")
            elif key in ("items", "then", "additionalProperties", "propertyNames"):
                yield from parts(inner, f"{path}/{key}")
            elif key == "allOf":
                for one in inner:
                    yield from parts(one, path)


# --- fixtures -----------------------------------------------------------------------------------------------------


@each("contract", CONTRACTS)
def test_valid_documents_pass_the_schema_and_are_the_same_through_their_type(contract: str) -> None:
    files = sorted((FIXTURES / contract / "valid").iterdir())
    assert files
    for file in files:
        raw = file.read_bytes()
        assert check_bytes(contract, raw) == [], file
        assert msgspec.to_builtins(msgspec.json.decode(raw, type=TYPES[contract])) == json.loads(raw)
        assert contract_of(json.loads(raw)) == contract


@each("contract", CONTRACTS)
def test_invalid_documents_are_refused_for_just_what_is_wrong_with_them(contract: str) -> None:
    expected = json.loads((FIXTURES / contract / "problems.json").read_text())
    found = {
        file.stem: places(check_bytes(contract, file.read_bytes()))
        for file in (FIXTURES / contract / "invalid").iterdir()
    }
    assert found == {name: sorted((one["kind"], one["pointer"]) for one in all_) for name, all_ in expected.items()}
    assert len(found) >= 5
    holes = {name for names in HOLES.values() for name in names} if contract in TYPED else set()
    assert (holes | set(OTHER_HOLES[contract])) <= {name for name, problems in found.items() if problems}


@pytest.mark.skipif(not GIVEN.is_dir(), reason="the documents that the specification came with are not here")
def test_the_given_documents_pass_but_where_a_rule_of_ours_says_otherwise() -> None:
    files = sorted(GIVEN.glob("*.json"))
    assert len(files) == 13
    found = {}
    for file in files:
        contract = contract_of(json.loads(file.read_bytes()))
        assert contract is not None
        found[file.stem] = places(check_bytes(contract, file.read_bytes()))
    assert found == {file.stem: EXCEPTIONS.get(file.stem, []) for file in files}


# --- schemas ------------------------------------------------------------------------------------------------------


@each("contract", CONTRACTS)
def test_a_schema_is_closed_and_leaves_nothing_open(contract: str) -> None:
    assert SCHEMAS[contract]["$id"] == f"{BASE}{contract}.schema.json"
    assert SCHEMAS[contract]["$schema"].endswith("draft-07/schema#")
    assert SCHEMAS[contract]["version"] == CONTRACT_VERSION
    for place, schema in parts(SCHEMAS[contract]):
        if "properties" in schema and "type" in schema:
            assert schema.get("additionalProperties") is not None, place
        if "pattern" in schema:
            pattern = schema["pattern"]
            assert pattern == VISIBLE or (pattern.startswith("^") and pattern.endswith(END)), place
            assert "$" not in pattern.removesuffix(END), place
        if schema.get("type") == "integer":
            assert "const" in schema or ("minimum" in schema and "maximum" in schema), place
        if schema.get("type") == "string":
            assert {"maxLength", "enum", "const", "pattern"} & set(schema), place
            assert "maxLength" in schema or schema.get("pattern") != VISIBLE, place
        if schema.get("type") == "array":
            assert "maxItems" in schema, place


def test_numbers_that_are_no_integers_stand_where_they_may_only() -> None:
    numbers = {
        (name, place) for name in CONTRACTS for place, one in parts(SCHEMAS[name]) if one.get("type") == "number"
    }
    assert numbers == {("job_status", "/progress")}


def test_the_safety_bounds_are_the_specifications() -> None:
    assert (TEXT_CHARS_MAX, MIN_ACTION_DELAY_MS) == (1024, 100)
    for contract, names in (
        ("action_proposal", ("max_chars", "rate_limit_ms")),
        ("action_execute", ("max_text_length", "min_action_delay_ms")),
    ):
        bounds = SCHEMAS[contract]["properties"]["safety_bounds"]
        assert [bounds["properties"][name]["const"] for name in names] == [1024, 100]
        assert sorted(bounds["required"]) == sorted(names)
        longest = {one["maxLength"] for place, one in parts(SCHEMAS[contract]) if place.endswith("/payload/text")}
        assert longest == {1024}


def test_every_key_that_an_action_may_name_is_in_the_schemas() -> None:
    for contract in ("action_proposal", "action_execute"):
        for key in KEYS:
            raw = json.loads((FIXTURES / contract / "valid" / "key_combo.json").read_bytes())
            raw["payload"]["keys"] = [key]
            assert check(contract, raw) == []


def test_the_firmware_was_built_for_these_contracts() -> None:
    """Otherwise run ``python -m pmagent.contracts.generate``."""
    assert FIRMWARE.read_bytes() == firmware_contract()
    namespace: dict[str, Any] = {}
    exec(FIRMWARE.read_text(), namespace)
    del namespace["__builtins__"], namespace["__doc__"]
    assert namespace == {"CONTRACT_VERSION": CONTRACT_VERSION, "CONTRACT_HASH": CONTRACT_HASH}


def test_the_hash_is_that_of_what_the_schemas_mean() -> None:
    assert set_hash(SCHEMAS) == CONTRACT_HASH
    reworded = json.loads(json.dumps(SCHEMAS))
    reworded["hello"] = dict(reversed(list(reworded["hello"].items()))) | {"description": "Hello."}
    reworded["job_status"]["properties"]["progress"]["description"] = "other words"
    assert set_hash(reworded) == CONTRACT_HASH
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda every: every["hello"]["required"].pop(),
        lambda every: every["job_status"]["properties"].pop("message"),
        lambda every: every["action_execute"]["allOf"].reverse(),
        lambda every: every["action_proposal"]["properties"].update(description={"type": "string"}),
        lambda every: every.pop("job_manifest"),
    ]
    for change in changes:
        changed = json.loads(json.dumps(SCHEMAS))
        change(changed)
        assert set_hash(changed) != CONTRACT_HASH


# --- what is said -------------------------------------------------------------------------------------------------


def test_a_document_gives_back_its_action() -> None:
    raw = (FIXTURES / "action_execute" / "valid" / "type_text.json").read_bytes()
    action = action_of(msgspec.json.decode(raw, type=TYPES["action_execute"]))
    assert action == TypeText(text="uname -a\n")
    assert objections(action) == []


@each("raw, pointer, text", [
    (b"", "", "it is not JSON at line 1, column 1"),
    (b'{"a": 1,}', "", "it is not JSON at line 1, column 9"),
    (b"\xef\xbb\xbf{}", "", "it is not JSON at line 1, column 1"),
    (b'{"a": "\xff"}', "", "byte 8 is not UTF-8"),
    (b"[" * 60_000, "", "it is more than 32 levels deep"),
    (b"[" * 40 + b"]" * 40, "/0", "it is more than 32 levels deep"),
    (b" " * 65_537, "", "it has 65537 bytes, not at most 65536"),
    (b'{"a": {"b": [0, -Infinity]}}', "/a/b/1", "it is no finite number"),
    (b'{"a": 1e999}', "/a", "it is no finite number"),
    (b'{"a": ' + b"9" * 5000 + b"}", "/a", "it is too large a number"),
    (b'{"a": 9223372036854775808}', "/a", "it is too large a number"),
    (b'{"a": {"b": 1, "b": 1}}', "/a", "a key stands in it twice"),
    (b'{"a": "\\udc00"}', "/a", "half of a surrogate pair stands in it"),
    (b'{"secret word": [NaN]}', "", "it is no finite number"),
])
def test_what_is_no_strict_json_is_no_document(raw: bytes, pointer: str, text: str) -> None:
    for contract in CONTRACTS:
        assert check_bytes(contract, raw) == [Problem(kind="schema_validation", pointer=pointer, text=text)]


def test_a_decoded_value_that_no_json_holds_is_refused_too() -> None:
    for value in ({1, 2}, {1: 2}, {"a": float("nan")}, ("a",), b"x", {"a": 2**64}):
        (problem,) = check("hello", value)
        assert problem.kind == "schema_validation"


def test_an_unknown_contract_is_a_bug_of_the_caller() -> None:
    with pytest.raises(KeyError):
        check("action_macro", {})
    with pytest.raises(KeyError):
        check_bytes("action_macro", b"{")


def test_problems_are_told_in_the_documents_order_and_once() -> None:
    raw = json.loads((FIXTURES / "action_execute" / "valid" / "type_text.json").read_bytes())
    raw |= {"mode": "OBSERVE", "timestamp": 7, "payload": {"text": "caf\u65e5" * 300}}
    assert [(problem.pointer, problem.text) for problem in check("action_execute", raw)] == [
        ("/timestamp", "it is not a text"),
        ("/mode", "it is not EXECUTE"),
        ("/payload/text", "it has 1200 characters, not at most 1024"),
        ("/payload/text", "character 4 is none that any keyboard types"),
    ]


def test_a_contract_is_told_by_what_is_left_of_a_document() -> None:
    assert contract_of({"operator_approval": {}}) == "action_execute"
    assert contract_of({"proposal_id": "x"}) is None
    assert contract_of([]) is None
