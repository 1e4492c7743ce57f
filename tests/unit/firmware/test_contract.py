"""The device takes just the documents that the contract allows, and writes no others."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.checking import check as contract_check
from pmagent.contracts.pla import digest
from pmagent.firmware import contract
from pmagent.firmware.actions import check
from pmagent.firmware.core import Core
from pmagent.firmware.lines import LineReader, encode
from pmagent.firmware.refusal import Refused
from tests.support import firmware_player
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.firmware_board import BOOT, ONE, TIME, document
from tests.support.firmware_scripts import actions
from tests.support.firmware_vectors import FOLDER

FIXTURES = Path(__file__).parents[2] / "contract" / "fixtures" / "pla" / "action_execute"
_OUTSIDE_TEXTS = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


def refusal(raw: str) -> str:
    """The device's word for what is wrong with a document; "" where it takes it. The approval is taken as right."""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        found = {}
    approval = found.get("operator_approval")
    approved = approval.get("digest") if isinstance(approval, dict) else None
    execution_id = found.get("execution_id")
    own = approved if isinstance(approved, str) else "0" * 64
    try:
        check(raw.encode(), execution_id if isinstance(execution_id, str) else "", own, lambda _: own)
    except Refused as refused:
        return refused.code
    return ""


def compact(text: str) -> str:
    """The same JSON without spaces, as often as its keys are there."""
    return _OUTSIDE_TEXTS.sub(lambda found: found[1] or "", text)


@each("path", sorted(FIXTURES.glob("valid/*.json")))
def test_the_contract_s_valid_documents_are_taken(path: Path) -> None:
    assert refusal(compact(path.read_text())) == ""


@each("path", sorted(FIXTURES.glob("invalid/*.json")))
def test_the_contract_s_invalid_documents_are_refused(path: Path) -> None:
    assert refusal(compact(path.read_text())) in ("SCHEMA", "BOUNDS", "MODE", "APPROVAL", "UNTYPABLE")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-6000, 6000),
    st.sampled_from([1024, 100, 99, 1.0, 0.5, "EXECUTE", "OBSERVE"]),
    st.text("aZ0_-:.+T Z\n\u00e9", max_size=12), st.lists(st.sampled_from(["a", "ctrl", "A"]), max_size=7), st.just({}),
    st.sampled_from([
        "2026-02-28T00:00:00Z", "2026-02-29T00:00:00Z", "2024-02-29T23:59:59.123456789+23:59", "2026-13-01T00:00:00Z",
        "2026-11-22T24:00:00Z", "2026-11-22T00:00:60Z", "2026-11-22T00:00:00.Z", "2026-11-22t00:00:00z",
        "0000-01-01T00:00:00Z", "2026-11-22T00:00:00+24:00", "2026-11-22T00:00:00",
        "2026-11-22T00:00:00.1234567890Z", "1900-02-29T00:00:00Z",
    ]),
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_any_one_or_two_changes_are_refused_just_when_the_contract_objects(data: st.DataObject) -> None:
    changed = deepcopy(document(data.draw(st.sampled_from(actions())), ONE))
    for _ in range(data.draw(st.integers(1, 2))):
        place: Any = changed
        while True:
            names = [*place, "other"]
            name = data.draw(st.sampled_from(names))
            if isinstance(place.get(name), dict) and place[name] and data.draw(st.booleans()):
                place = place[name]
                continue
            break
        if name in place and data.draw(st.booleans()):
            del place[name]
        else:
            place[name] = data.draw(VALUES)
    problems = contract_check("action_execute", changed)
    assert bool(refusal(json.dumps(changed, separators=(",", ":")))) == bool(problems), problems


def documents(lines: list[Any]) -> list[tuple[str, Any]]:
    """The documents that a device wrote, with their contracts."""
    found = []
    for line in lines:
        if line.get("op") == "status":
            found.append(("device_status", {name: value for name, value in line.items() if name != "op"}))
        if "hello" in line:
            found.append(("hello", line["hello"]))
        if "status" in line:
            found.append(("device_status", {**line["status"], **_execution(line)}))
    return found


def _execution(line: dict[str, Any]) -> dict[str, Any]:
    return {"execution": line["execution"]} if "execution" in line else {}


def test_what_the_device_writes_keeps_its_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all exchanges of the vectors."""
    written: list[Any] = []
    feed = LineReader.feed

    def noted(reader: LineReader, data: bytes) -> Any:
        found = feed(reader, data)
        written.extend(line for line in found if line is not None and "n" not in line)  # what it hears has numbers
        return found

    monkeypatch.setattr(LineReader, "feed", noted)
    for exchange in json.loads((FOLDER / "exchanges.json").read_text()):
        firmware_player.play(exchange, lambda data: sha256(data).hexdigest())
    found = documents(written)
    assert {name for name, _ in found} == {"device_status", "hello"}
    assert len(found) > 60
    for name, one in found:
        assert contract_check(name, one) == [], one


def test_the_board_s_own_names_keep_the_contract() -> None:
    """As code.py makes them of the chip's."""
    core = Core(
        "pla-e6616408432b6a29", BOOT, contract.CONTRACT_VERSION, contract.CONTRACT_HASH, "1.0.0", "POWER_ON",
        sha256=lambda _: "",
    )  # fmt: skip
    versions = {"contract_version": contract.CONTRACT_VERSION, "contract_hash": contract.CONTRACT_HASH}
    lines = encode({"n": 1, "op": "hello", **versions, "time": TIME}) + encode({"n": 2, "op": "ping", "boot_id": BOOT})
    sent = core.step(0, lines, killed=False, dtr=True, usb=True, caps_lock=False, room=4096).send
    told = [line for line in LineReader().feed(sent) if line is not None]
    assert len(told) == 2
    for name, one in documents(told):
        assert contract_check(name, one) == []


def test_the_digest_is_the_one_of_the_contracts() -> None:
    for action in actions():
        text = json.dumps(document(action, ONE), separators=(",", ":"))
        check(text.encode(), ONE, digest(action), lambda data: sha256(data).hexdigest())
