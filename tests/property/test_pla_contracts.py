"""The PLA's schemas take every document that keeps a contract; what is said of a document holds nothing of it."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.contracts.checking import CONTRACTS, check, check_bytes
from pmagent.contracts.pla import KeyCombo, MouseClick, MouseMove, TypeText, objections
from pmagent.contracts.pla_documents import TYPES, action_of
from pmagent.contracts.pla_moment import MOMENT, VISIBLE
from pmagent.contracts.strict_json import NotJson, read
from tests.support.effort import examples
from tests.support.pla_documents import DOCUMENTS, actions, prose, spoiled
from tests.support.single_changes import STRANGE

QUICK = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("contract", CONTRACTS)
@QUICK
@given(data=st.data())
def test_what_keeps_a_contract_passes_its_schema_and_is_the_same_through_its_type(
    contract: str, data: st.DataObject
) -> None:
    document = data.draw(DOCUMENTS[contract])
    assert check(contract, document) == []
    made = msgspec.convert(document, TYPES[contract])
    encoded = msgspec.json.encode(made)
    assert check_bytes(contract, encoded) == []
    assert json.loads(encoded) == document


@QUICK
@given(st.sampled_from(CONTRACTS), st.sampled_from(CONTRACTS), st.data())
def test_no_document_keeps_another_contract_than_its_own(one: str, other: str, data: st.DataObject) -> None:
    assert (check(other, data.draw(DOCUMENTS[one])) == []) == (one == other)


@QUICK
@given(st.sampled_from(CONTRACTS), st.data())
def test_what_is_said_of_a_document_holds_nothing_of_its_values(contract: str, data: st.DataObject) -> None:
    document = data.draw(DOCUMENTS[contract])
    names = [name for name, value in document.items() if isinstance(value, str)]
    document[data.draw(st.sampled_from(names))] = "hunter2hunter2\u00e9" * data.draw(st.sampled_from([1, 200]))
    document["payload"] = {"text": "hunter2\u00e9", "keys": ["hunter2"], "button": "hunter2"}
    document["details"] = {"old_mode": "hunter2", "hunter2 is a name that says too much, and is not told": []}
    problems = check(contract, document)
    assert problems
    for problem in problems:
        assert "hunter2" not in problem.text + problem.pointer
        assert problem.text.isprintable()
        assert len(problem.text) <= 300
        assert len(problem.pointer) <= 200


@QUICK
@given(st.sampled_from(CONTRACTS), st.recursive(st.sampled_from(STRANGE) | prose, st.lists, max_leaves=5))
def test_any_value_at_all_is_checked_and_refused(contract: str, value: Any) -> None:
    assert check(contract, value)
    assert check(contract, {"details": value, "payload": value, "execution": value, "action_type": value})


@QUICK
@given(st.sampled_from(CONTRACTS), st.binary(max_size=60) | st.text('{}[]":,0.e-\\udtrue ').map(str.encode))
def test_any_bytes_at_all_are_checked_and_refused(contract: str, raw: bytes) -> None:
    assert check_bytes(contract, raw)


@QUICK
@given(st.text('{}[]":,01.eE-+\\udabcntrulfsN \t\n').map(str.encode))
def test_strict_json_is_json_to_a_second_reader(raw: bytes) -> None:
    try:
        value = read(raw)
    except NotJson:
        return
    assert msgspec.json.decode(raw) == value


@QUICK
@given(actions | spoiled(actions))
def test_a_payload_keeps_its_contract_just_when_nothing_stands_against_the_action(action: dict[str, Any]) -> None:
    document = {
        "execution_id": "exec-0000", "proposal_id": "prop-0000", "timestamp": "2026-03-02T09:15:00Z", "mode": "EXECUTE",
        "safety_bounds": {"max_text_length": 1024, "min_action_delay_ms": 100},
        "operator_approval": {"decision_timestamp": "2026-03-02T09:15:00Z", "operator_id": "op"}, **action,
    }  # fmt: skip
    try:
        plain = {"action_type": action["action_type"], **action["payload"]}
        made = msgspec.convert(plain, TypeText | KeyCombo | MouseMove | MouseClick)
    except (msgspec.ValidationError, KeyError, TypeError):
        assert check("action_execute", document)
        return
    if check("action_execute", document) == []:
        assert objections(made) == []
        assert action_of(msgspec.convert(document, TYPES["action_execute"])) == made
    elif action.keys() == {"action_type", "payload"}:
        assert objections(made)


@QUICK
@given(
    st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]Z", fullmatch=True)
    | st.builds("{:04}-02-{}T00:00:00Z".format, st.integers(0, 9999), st.integers(28, 30))
)
def test_a_moment_is_one_of_the_calendar(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        assert re.search(MOMENT, text) is None
    else:
        assert re.search(MOMENT, text) is not None


@QUICK
@given(
    st.text(
        st.characters(categories=["Zs", "Zl", "Zp", "Cc"]) | st.sampled_from("\u200b\u200e\u202e\u2060\u2066\ufeff")
    )
)
def test_a_text_of_blanks_and_controls_shows_nothing(text: str) -> None:
    assert re.search(VISIBLE, text) is None
    assert re.search(VISIBLE, text + "x")
