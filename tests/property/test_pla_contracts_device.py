"""Brain and device keep one contract: the firmware takes just the executions that the schema takes, and what it says of
itself are documents."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.wire import exchanges
from pmagent.contracts.checking import check, check_bytes
from pmagent.contracts.hid import HidPrepareRequested
from pmagent.contracts.pla import CONTRACT_VERSION, digest
from pmagent.contracts.pla_documents import TYPES, action_of
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from pmagent.firmware.actions import check as device_check
from pmagent.firmware.core import TICKS, Core
from pmagent.firmware.executions import PARTS_MAX
from pmagent.firmware.lines import LineReader, encode
from pmagent.firmware.refusal import Refused
from tests.support.effort import examples
from tests.support.pla_documents import DOCUMENTS, spoiled

QUICK = settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
EXECUTIONS = DOCUMENTS["action_execute"]


def hexed(data: bytes) -> str:
    return sha256(data).hexdigest()


def digest_of(document: dict[str, Any]) -> str:
    """The digest that an operator would have been shown for it."""
    action = {"action_type": document.get("action_type"), "payload": document.get("payload")}
    return hexed(json.dumps(action, sort_keys=True, separators=(",", ":")).encode())


def device_takes(document: dict[str, Any]) -> bool:
    raw = json.dumps(document, separators=(",", ":")).encode()
    try:
        device_check(raw, str(document.get("execution_id")), digest_of(document), hexed)
    except Refused:
        return False
    return True


@QUICK
@given(EXECUTIONS)
def test_the_device_takes_an_execution_that_keeps_the_contract_and_names_what_was_approved(
    document: dict[str, Any],
) -> None:
    document["operator_approval"]["digest"] = digest_of(document)
    assert check("action_execute", document) == []
    assert device_takes(document)
    document["operator_approval"]["digest"] = hexed(b"another")
    assert check("action_execute", document) == []
    assert not device_takes(document)


@QUICK
@given(spoiled(EXECUTIONS.map(lambda one: one | {"operator_approval": {
    "decision_timestamp": one["timestamp"], "operator_id": one["operator_approval"]["operator_id"],
}})))  # fmt: skip
def test_the_device_refuses_an_execution_just_when_the_contract_does(document: dict[str, Any]) -> None:
    raw = json.dumps(document).encode()
    approval = document.get("operator_approval")
    named = approval.get("digest") if isinstance(approval, dict) else None
    if named is None or named == digest_of(document):
        assert device_takes(document) == (check_bytes("action_execute", raw) == [])
    else:
        assert not device_takes(document)


@QUICK
@given(EXECUTIONS)
def test_what_the_host_hands_over_keeps_the_contract_and_is_taken(made: dict[str, Any]) -> None:
    action = action_of(msgspec.convert(made, TYPES["action_execute"]))
    asked = HidPrepareRequested(
        boot_id="00112233445566aa", execution_id=made["execution_id"], proposal_id=made["proposal_id"],
        digest=digest(action), action=action, masked=False,
        operator_id=made["operator_approval"]["operator_id"], decided_at="2026-03-02T09:15:00.000000Z",
    )  # fmt: skip
    handed = exchanges.document(asked, action, "2026-03-02T09:15:01.000000Z")
    assert check("action_execute", handed) == []
    assert device_takes(handed)
    assert len(exchanges.parts_of(handed)) <= PARTS_MAX


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 2_000), st.booleans(), st.booleans(),
            st.sampled_from(["hello", "arm", "ping", "disarm", "status", "nonsense", "damage", "prepare", "commit"]),
        ),
        min_size=1, max_size=25,
    )
)  # fmt: skip
def test_whatever_befalls_the_device_what_it_says_of_itself_are_documents(
    rounds: list[tuple[int, bool, bool, str]],
) -> None:
    boot = "00112233445566aa"
    core = Core("device-0001", boot, CONTRACT_VERSION, CONTRACT_HASH, "1.0.0", "POWER_ON", sha256=hexed)
    device, now = LineReader(), TICKS - 5_000
    document = json.dumps(
        {
            "execution_id": "exec-00000001", "proposal_id": "prop-00000001", "timestamp": "2026-03-02T09:15:00Z",
            "mode": "EXECUTE", "action_type": "TYPE_TEXT", "payload": {"text": "ls\n"},
            "safety_bounds": {"max_text_length": 1024, "min_action_delay_ms": 100},
            "operator_approval": {"decision_timestamp": "2026-03-02T09:15:00Z", "operator_id": "op"},
        },
        separators=(",", ":"),
    )  # fmt: skip
    known: dict[str, object] = {
        "boot_id": boot,
        "execution_id": "exec-00000001",
        "digest": digest_of(json.loads(document)),
    }
    fields: dict[str, dict[str, object]] = {
        "hello": {"contract_version": CONTRACT_VERSION, "contract_hash": CONTRACT_HASH, "time": "2026-03-02T09:15:00Z"},
        "arm": {"boot_id": boot, "lease_ms": 2000},
        "ping": {"boot_id": boot},
        "status": {"execution_id": "exec-00000001"},
        "prepare": {**known, "part": 0, "parts": 1, "data": document},
        "commit": known,
    }
    begin = [(1, False, False, op) for op in ("hello", "prepare", "arm", "commit")]
    documents = 0
    for number, (passed, killed, caps_lock, op) in enumerate([*begin, *rounds], 1):
        now = (now + passed) % TICKS
        request = encode({"n": number, "op": op, **fields.get(op, {})})
        received = request.replace(b"op", b"po", 1) if op == "damage" else request
        step = core.step(now, received, killed=killed, dtr=True, usb=True, caps_lock=caps_lock, room=60_000)
        if step.reports:
            core.reported(ok=not caps_lock, code="USB")
        for line in device.feed(step.send):
            assert isinstance(line, dict)
            documents += kept(line)
    assert documents


def kept(line: dict[str, Any]) -> int:
    """How many documents stand in a line; each keeps its contract."""
    found = [("hello", line["hello"])] if "hello" in line else []
    if line.get("op") == "status":
        found.append(("device_status", {name: value for name, value in line.items() if name != "op"}))
    if "status" in line:
        execution = {"execution": line["execution"]} if "execution" in line else {}
        found.append(("device_status", line["status"] | execution))
    for contract, document in found:
        assert check(contract, document) == [], document
    return len(found)
