"""Exchanges in which the device refuses, written by hand from docs/hid-protocol.md."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.pla import MouseClick, TypeText, digest
from tests.support.firmware_desk import BOOT, CONTRACT, HELLO, HI, MORE, ONE, RELEASE, TIME, Desk, compact, document


def not_allowed() -> Desk:
    """What has to come before."""
    desk = Desk("nothing is done before hello, for another boot, unarmed or unprepared")
    boot = {"boot_id": BOOT}
    commit = {**boot, "execution_id": ONE, "digest": digest(HI)}
    part = desk.parts(ONE, digest(HI), compact(document(HI, ONE)))[0]
    for op, fields in (("ping", boot), ("arm", {**boot, "lease_ms": 500}), ("prepare", part), ("commit", commit)):
        desk.refused(op, fields, "NO_HELLO", "hello comes first")
    desk.ask("status", {}, {"status": {"timestamp": "1970-01-01T00:00:00Z", "mode": "OBSERVE", **MORE}})
    desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
    desk.hello()
    other = {"boot_id": "00112233445566ab"}
    for op, fields in (("ping", {}), ("arm", {"lease_ms": 500}), ("prepare", part), ("commit", commit)):
        desk.refused(op, {**fields, **other}, "BOOT_MISMATCH", "the device has booted since")
    desk.arm()
    desk.refused("commit", commit, "NOT_PREPARED", "this execution is not prepared", led=True)
    desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
    desk.prepare(HI, ONE, 8)
    desk.refused("commit", commit, "NOT_ARMED", "the device is not armed")
    desk.arm()
    desk.refused(
        "commit", {**commit, "digest": "0" * 64}, "DIGEST", "the execution is known with another digest", led=True
    )
    desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
    desk.arm()
    desk.refused("commit", commit, "NOT_PREPARED", "this execution is not prepared", led=True)
    desk.step(ms=8, rounds=20, led=True)
    return desk


def other_contract() -> Desk:
    """A host whose contract is another."""
    desk = Desk("with another contract there is status, and nothing is typed")
    part = desk.parts(ONE, digest(HI), compact(document(HI, ONE)))[0]
    commit = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    for version, sum in (("2.0.0", "c" * 64), ("1.0.0", "d" * 64)):
        other = {"contract_version": version, "contract_hash": sum, "time": TIME}
        desk.ask("hello", other, {"hello": HELLO}, ms=8, reports=[RELEASE])
        for op, fields in (("arm", {"boot_id": BOOT, "lease_ms": 500}), ("prepare", part), ("commit", commit)):
            desk.refused(op, fields, "CONTRACT_MISMATCH", "the contracts of host and device differ")
        desk.ask("ping", {"boot_id": BOOT}, {"status": {"mode": "OBSERVE", **MORE}})
    minor = {"contract_version": "1.7.3", "contract_hash": "c" * 64, "time": TIME}
    desk.ask("hello", minor, {"hello": HELLO}, ms=8, reports=[RELEASE])
    desk.arm()
    return desk


def misshapen() -> Desk:
    """Requests that are none."""
    desk = Desk("a request that misses its shape does nothing")
    desk.hello()
    boot = {"boot_id": BOOT}
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("type", {}, "PARSE", "there is no such op"),
        ("arm", boot, "PARSE", "lease_ms is missing"),
        ("arm", {"lease_ms": 500}, "PARSE", "boot_id is missing"),
        ("arm", {**boot, "lease_ms": "500"}, "PARSE", "lease_ms is no integer"),
        ("arm", {**boot, "lease_ms": True}, "PARSE", "lease_ms is no integer"),
        ("arm", {**boot, "lease_ms": 500, "force": True}, "PARSE", "there is a field that the contract does not have"),
        ("arm", {**boot, "lease_ms": 99}, "BOUNDS", "lease_ms is not 100 to 5000"),
        ("arm", {**boot, "lease_ms": 5001}, "BOUNDS", "lease_ms is not 100 to 5000"),
        ("ping", {"boot_id": 7}, "PARSE", "boot_id is no text"),
        ("status", {"execution_id": "a b"}, "PARSE", "execution_id has another shape"),
        ("commit", {**boot, "execution_id": "exec", "digest": digest(HI)}, "PARSE",
         "execution_id or digest has another shape"),
        ("commit", {**boot, "execution_id": ONE, "digest": "A" * 64}, "PARSE",
         "execution_id or digest has another shape"),
        ("hello", {**CONTRACT, "time": "2026-11-22 23:59:59Z"}, "PARSE", "time is no time in UTC"),
        ("hello", {**CONTRACT, "time": "2026-11-22T23:59:59+01:00"}, "PARSE", "time is no time in UTC"),
        ("hello", {"contract_version": "1.0.0", "time": TIME}, "PARSE", "contract_hash is no text"),
    ]  # fmt: skip
    for op, fields, error, text in cases:
        desk.refused(op, fields, error, text)
    for nameless in (
        {"op": "disarm"},
        {"n": 0, "op": "disarm"},
        {"n": "5", "op": "disarm"},
        {"n": True, "op": "disarm"},
    ):
        desk.step(hear=[nameless])
    counted = {"error_code": "COMMAND_PARSE_ERROR", "error_count": len(cases) + 4, "has_error": True}
    told = {"error_state": {**counted, "error_message": "PARSE: a request without a number"}, **MORE}
    desk.ask("status", {}, {"status": told})
    return desk


def handed_over() -> Desk:
    """Parts in their order."""
    desk = Desk("parts come in their order, and a held one may come again as it was")
    desk.hello()
    text = compact(document(HI, ONE))
    parts = desk.parts(ONE, digest(HI), text, len(text) // 3 + 1)
    due = "this part was not due"
    desk.refused("prepare", parts[1], "ORDER", due)
    desk.ask("prepare", parts[0], {"have": 1})
    desk.ask("prepare", parts[0], {"have": 1})
    desk.ask("prepare", parts[1], {"have": 2})
    desk.ask("prepare", parts[1], {"have": 2})
    desk.refused("prepare", {**parts[1], "data": "x"}, "ORDER", due)
    desk.refused("prepare", parts[2], "ORDER", due)
    desk.ask("prepare", parts[0], {"have": 1})
    desk.refused("prepare", parts[2], "ORDER", due)
    desk.ask("prepare", parts[0], {"have": 1})
    desk.refused("prepare", {**parts[1], "execution_id": "exec-00000002"}, "ORDER", due)
    desk.ask("prepare", parts[0], {"have": 1})
    desk.refused("prepare", {**parts[1], "parts": 4}, "ORDER", due)
    bounds = "at most 16 parts of 512 characters"
    for wrong in ({"part": 3}, {"part": -1}, {"parts": 17}, {"parts": 0}, {"data": "x" * 513}):
        desk.refused("prepare", {**parts[0], **wrong}, "BOUNDS", bounds)
    for part in parts[:2]:
        desk.ask("prepare", part, {"have": part["part"] + 1})
    done = {"state": "PREPARED", "digest": digest(HI), "of": 8}
    desk.ask("prepare", parts[2], {"have": 3, **done})
    desk.ask("prepare", parts[2], {"have": 3, **done})
    desk.refused("prepare", {**parts[2], "digest": "0" * 64}, "DIGEST", "the execution is known with another digest")
    desk.asked(HI, ONE, "NONE", 0, 0)
    click = MouseClick(button="left")
    desk.prepare(HI, ONE, 8)
    desk.prepare(click, "exec-00000002", 2)
    desk.asked(HI, ONE, "NONE", 0, 0)
    desk.asked(click, "exec-00000002", "PREPARED", 0, 2)
    desk.ask("prepare", parts[0], {"have": 1})  # the one before is forgotten with the first part of another
    desk.asked(click, "exec-00000002", "NONE", 0, 0)
    return desk


def documents() -> Desk:
    """Documents that are refused, each for its reason."""
    desk = Desk("a document that is not what was approved, or not what the contract says, is not prepared")
    desk.hello()
    approval = {"decision_timestamp": TIME, "operator_id": "op"}
    bounds = {"max_text_length": 1024, "min_action_delay_ms": 100}
    foreign = "there is a field that the contract does not have"
    not_approved = "what was handed over is not what was approved"
    bad_json = "the document is no compact ASCII JSON"
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("DIGEST", not_approved, {"payload": {"text": "Ho!\n"}}),
        ("DIGEST", not_approved, {"sum": "0" * 64}),
        ("DIGEST", not_approved, {"operator_approval": {**approval, "digest": "0" * 64}}),
        ("SCHEMA", bad_json, {"raw": "{}{}"}),
        ("SCHEMA", bad_json, {"raw": '{"mode":"EXECUTE","mode":"EXECUTE"}'}),
        ("SCHEMA", bad_json, {"raw": '{"text": "a"}'}),
        ("SCHEMA", "the document is no object", {"raw": "[]"}),
        ("SCHEMA", "execution_id is missing", {"raw": "{}"}),
        ("SCHEMA", foreign, {"force": True}),
        ("ORDER", "the document is that of another execution", {"execution_id": "exec-00000002"}),
        ("SCHEMA", "execution_id is no id", {"execution_id": "exec-00000001\n"}),
        ("SCHEMA", "proposal_id is no id", {"proposal_id": "p"}),
        ("SCHEMA", "timestamp is no time", {"timestamp": "now"}),
        ("SCHEMA", "timestamp is no time", {"timestamp": "2026-02-29T00:00:00Z"}),
        ("MODE", "mode is not EXECUTE", {"mode": "SUGGEST"}),
        ("SCHEMA", "mode is no text", {"mode": None}),
        ("SCHEMA", "there is no such action_type", {"action_type": "RUN"}),
        ("SCHEMA", "x is missing", {"action_type": "MOUSE_MOVE", "payload": {"y": 0}}),
        ("SCHEMA", "x is no integer", {"action_type": "MOUSE_MOVE", "payload": {"x": 1.0, "y": 0}}),
        ("SCHEMA", "x is no integer", {"action_type": "MOUSE_MOVE", "payload": {"x": True, "y": 0}}),
        ("SCHEMA", "x is no integer", {"action_type": "MOUSE_MOVE", "payload": {"x": 10**10, "y": 0}}),
        ("BOUNDS", "x is not -1000 to 5000", {"action_type": "MOUSE_MOVE", "payload": {"x": -1001, "y": 0}}),
        ("BOUNDS", "y is not -1000 to 5000", {"action_type": "MOUSE_MOVE", "payload": {"x": 0, "y": 5001}}),
        ("SCHEMA", "the button is none of left, right, middle", {"action_type": "MOUSE_CLICK",
                                                                    "payload": {"button": "back"}}),
        ("SCHEMA", foreign, {"payload": {"text": "Hi!\n", "keys": ["a"]}}),
        ("SCHEMA", foreign, {"action_type": "KEY_COMBO", "payload": {"keys": ["a"], "text": "x" * 600}}),
        ("SCHEMA", "text is missing", {"payload": {"keys": ["a"]}}),
        ("SCHEMA", "the text is empty", {"payload": {"text": ""}}),
        ("BOUNDS", "the text has 1025 characters, not at most 1024", {"payload": {"text": "x" * 1025}}),
        ("UNTYPABLE", "character 3 is U+00E9, which a US keyboard cannot type", {"payload": {"text": "ab\u00e9cd"}}),
        ("UNTYPABLE", "character 1 is U+1F600, which a US keyboard cannot type", {"payload": {"text": "\U0001f600"}}),
        ("UNTYPABLE", "character 2 is U+0080, which a US keyboard cannot type", {"payload": {"text": "a\x80"}}),
        ("UNTYPABLE", "character 2 is U+0000, which a US keyboard cannot type", {"payload": {"text": "a\0"}}),
        ("UNTYPABLE", "character 1 is U+000D, which a US keyboard cannot type", {"payload": {"text": "\r"}}),
        ("SCHEMA", "keys is no list with keys", {"action_type": "KEY_COMBO", "payload": {"keys": []}}),
        ("SCHEMA", "key 2 is named twice", {"action_type": "KEY_COMBO", "payload": {"keys": ["a", "a"]}}),
        ("UNTYPABLE", "key 2 is none of this keyboard's", {"action_type": "KEY_COMBO",
                                                                  "payload": {"keys": ["ctrl", "F5"]}}),
        ("UNTYPABLE", "key 1 is none of this keyboard's", {"action_type": "KEY_COMBO", "payload": {"keys": ["!"]}}),
        ("BOUNDS", "at most 6 keys, and one of them no modifier unless it stands alone",
         {"action_type": "KEY_COMBO", "payload": {"keys": list("abcdefg")}}),
        ("BOUNDS", "at most 6 keys, and one of them no modifier unless it stands alone",
         {"action_type": "KEY_COMBO", "payload": {"keys": ["ctrl", "alt"]}}),
        ("BOUNDS", "max_text_length is not 1024", {"safety_bounds": {**bounds, "max_text_length": 4096}}),
        ("BOUNDS", "min_action_delay_ms is not 100", {"safety_bounds": {**bounds, "min_action_delay_ms": 0}}),
        ("SCHEMA", "max_text_length is no integer", {"safety_bounds": {**bounds, "max_text_length": 1024.0}}),
        ("SCHEMA", "max_text_length is missing", {"safety_bounds": {}}),
        ("APPROVAL", "operator_approval is no object", {"operator_approval": None}),
        ("APPROVAL", "operator_id is missing", {"operator_approval": {"decision_timestamp": TIME}}),
        ("APPROVAL", "operator_id is no id", {"operator_approval": {**approval, "operator_id": "o"}}),
        ("APPROVAL", "decision_timestamp is no time", {"operator_approval": {**approval, "decision_timestamp": "x"}}),
        ("APPROVAL", foreign, {"operator_approval": {**approval, "by": "me"}}),
        ("APPROVAL", "digest is no SHA-256", {"operator_approval": {**approval, "digest": "0"}}),
    ]  # fmt: skip
    for error, text, changes in cases:
        desk.refuse(HI, error, text, **changes)
    unapproved = document(HI, ONE)
    del unapproved["operator_approval"]
    desk.refuse(HI, "APPROVAL", "operator_approval is no object", raw=compact(unapproved))
    desk.arm()
    commit = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    desk.refused("commit", commit, "NOT_PREPARED", "this execution is not prepared", led=True)
    desk.step(ms=8, rounds=20, led=True)
    return desk


def longest() -> Desk:
    """Texts that fill their bounds."""
    desk = Desk("1,024 characters are prepared, also where each is written with two or six")
    desk.hello()
    for number, character in enumerate('x"\\\n'):
        desk.prepare(TypeText(text=character * 1024), f"exec-0000000{number}", 2048)
    text = TypeText(text="a" * 1024)
    raw = compact(document(text, ONE)).replace("a" * 1024, "\\u0061" * 1024)
    parts = desk.parts(ONE, digest(text), raw)
    for part in parts[:-1]:
        desk.ask("prepare", part, {"have": part["part"] + 1})
    desk.ask("prepare", parts[-1], {"have": len(parts), "state": "PREPARED", "digest": digest(text), "of": 2048})
    return desk
