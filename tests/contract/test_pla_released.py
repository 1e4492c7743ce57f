"""The PLA's contracts still hold as they were released (docs/design.md §16.1)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmagent import contracts
from pmagent.contracts.generate import FOLDER
from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schemas import SCHEMAS, set_hash
from tests.support.cases import each
from tests.support.compatibility import breaks, major

RELEASED = Path(contracts.__file__).parent / "released" / "pla"
VERSIONS = sorted((folder.name for folder in RELEASED.iterdir()), key=lambda name: [int(n) for n in name.split(".")])

Schemas = dict[str, Any]


def released(version: str) -> Schemas:
    return {
        file.name.removesuffix(".schema.json"): json.loads(file.read_bytes())
        for file in sorted((RELEASED / version).iterdir())
    }


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@each("version", VERSIONS)
def test_todays_contracts_keep_what_was_released_with_this_major_version(version: str) -> None:
    for name, schema in released(version).items():
        assert schema["version"] == version, name
    if major(version) == major(CONTRACT_VERSION):
        assert breaks(released(version), SCHEMAS) == []


def test_the_committed_schemas_are_the_released_ones_byte_for_byte() -> None:
    for file in (RELEASED / CONTRACT_VERSION).iterdir():
        assert (FOLDER / "pla" / "v1" / file.name).read_bytes() == file.read_bytes(), file.name


def test_another_set_of_contracts_has_another_version_than_the_newest_released_one() -> None:
    newest = VERSIONS[-1]
    if set_hash(released(newest)) == set_hash(SCHEMAS):
        assert newest == CONTRACT_VERSION
    else:
        assert numbers(CONTRACT_VERSION) > numbers(newest)


def execute(schemas: Schemas) -> Any:
    return schemas["action_execute"]


def text_of(schemas: Schemas) -> Any:
    return execute(schemas)["allOf"][0]["then"]["properties"]["payload"]["properties"]["text"]


def move_of(schemas: Schemas) -> Any:
    return execute(schemas)["allOf"][2]["then"]["properties"]["payload"]["properties"]["x"]


def status(schemas: Schemas) -> Any:
    return schemas["device_status"]["properties"]


BREAKING: dict[str, tuple[Callable[[Schemas], object], str]] = {
    "a contract is gone": (lambda s: s.pop("hello"), "hello: the contract is gone"),
    "a property is gone": (lambda s: status(s).pop("caps_lock"), "device_status/caps_lock: the property is gone"),
    "a type is another": (lambda s: status(s)["led_state"].update(type="integer"), "device_status/led_state: type was"),
    "a type is one more": (
        lambda s: status(s)["uptime_seconds"].update(type=["integer", "null"]), "device_status/uptime_seconds: type was"
    ),
    "a value of an enumeration is gone": (
        lambda s: s["session_log"]["properties"]["event_type"]["enum"].remove("ERROR"),
        "session_log/event_type: the value 'ERROR' is gone",
    ),
    "an enumeration came": (
        lambda s: status(s)["firmware_version"].update(enum=["1.0.0"]), "device_status/firmware_version: enum was added"
    ),
    "an enumeration went": (lambda s: status(s)["mode"].pop("enum"), "device_status/mode: enum was taken away"),
    "an optional field is required": (
        lambda s: s["action_decision"]["required"].append("digest"), "action_decision: digest is required now"
    ),
    "a new field is required": (
        lambda s: (execute(s)["properties"].update(nonce={"type": "string"}), execute(s)["required"].append("nonce")),
        "action_execute: nonce is required now",
    ),
    "a required field is optional": (
        lambda s: execute(s)["required"].remove("operator_approval"),
        "action_execute: operator_approval is not required any more",
    ),
    "a text is shorter": (
        lambda s: text_of(s).update(maxLength=512), "action_execute/payload/text: maxLength was 1024, and is 512"
    ),
    "a text is longer at least": (
        lambda s: text_of(s).update(minLength=2), "action_execute/payload/text: minLength was 1, and is 2"
    ),
    "a number has a smaller most": (
        lambda s: move_of(s).update(maximum=4000), "action_execute/payload/x: maximum was 5000, and is 4000"
    ),
    "a number has a larger least": (
        lambda s: move_of(s).update(minimum=0), "action_execute/payload/x: minimum was -1000, and is 0"
    ),
    "a bound came": (
        lambda s: s["job_status"]["properties"]["updated_at"].update(maxLength=20),
        "job_status/updated_at: maxLength 20 was not there",
    ),
    "a pattern is another": (
        lambda s: s["action_execute"]["properties"]["proposal_id"].update(pattern="^prop-"),
        "action_execute/proposal_id: pattern was changed",
    ),
    "a constant is another": (
        lambda s: execute(s)["properties"]["safety_bounds"]["properties"]["max_text_length"].update(const=2048),
        "action_execute/safety_bounds/max_text_length: const was changed",
    ),
    "an object is open": (
        lambda s: execute(s).update(additionalProperties=True), "action_execute: additionalProperties was changed"
    ),
    "a payload is not tied any more": (lambda s: execute(s)["allOf"].pop(0), "action_execute: a rule is gone"),
    "a rule is new": (
        lambda s: s["action_decision"]["allOf"].append(
            {"if": {"properties": {"decision": {"const": "APPROVED"}}}, "then": {"required": ["digest"]}}
        ),
        "action_decision: a rule is new",
    ),
    "a rule demands more": (
        lambda s: s["action_decision"]["allOf"][0]["then"]["required"].append("digest"),
        "action_decision: digest is required now",
    ),
    "a detail that was free has a shape": (
        lambda s: s["session_log"]["properties"]["details"]["properties"].update(code={"type": "integer"}),
        "session_log/details/code: documents could have it in another shape",
    ),
    "keys need not be different": (
        lambda s: execute(s)["allOf"][1]["then"]["properties"]["payload"]["properties"]["keys"].pop("uniqueItems"),
        "action_execute/payload/keys: uniqueItems was changed",
    ),
    "a name has another meaning": (
        lambda s: s["hello"].update({"$id": "https://pmagent.invalid/contracts/pla/v2/hello.schema.json"}),
        "hello: $id was changed",
    ),
}  # fmt: skip

COMPATIBLE: dict[str, Callable[[Schemas], object]] = {
    "nothing": lambda _: None,
    "other prose": lambda s: s["hello"].update(description="Hello."),
    "another version": lambda s: s["hello"].update(version="1.1.0"),
    "an optional field": lambda s: status(s).update(scroll_lock={"type": "boolean"}),
    "one value more": lambda s: s["device_status"]["properties"]["error_state"]["properties"]["error_code"][
        "enum"
    ].append("WATCHDOG"),
    "one contract more": lambda s: s.update(macro={"type": "object"}),
    "a wider bound": lambda s: s["job_status"]["properties"]["message"].update(maxLength=32_768),
    "an action more, with its payload": lambda s: (
        execute(s)["properties"]["action_type"]["enum"].append("MOUSE_SCROLL"),
        execute(s)["allOf"].append({
            "if": {"required": ["action_type"], "properties": {"action_type": {"const": "MOUSE_SCROLL"}}},
            "then": {"properties": {"payload": {"required": ["steps"]}}},
        }),
    ),
}


def test_each_breaking_change_is_found() -> None:
    for what, (change, told) in BREAKING.items():
        changed = copy.deepcopy(released("1.0.0"))
        change(changed)
        found = breaks(released("1.0.0"), changed)
        assert [one for one in found if one.startswith(told)], (what, found)


def test_a_change_that_only_adds_is_none() -> None:
    for what, change in COMPATIBLE.items():
        changed = copy.deepcopy(released("1.0.0"))
        change(changed)
        assert breaks(released("1.0.0"), changed) == [], what
