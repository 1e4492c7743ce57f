"""The documents that brain, operator and device hand each other (docs/design.md §16.1).

``pmagent.contracts.pla_schemas`` makes their JSON Schemas from these types: the order of the fields, the bounds and the
descriptions here are those of the schemas. Rules between fields stand there, beside the table of contracts.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.control import OperatorId
from pmagent.contracts.hid import ExecutionState
from pmagent.contracts.jobs import JobManifest, JobStatus
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.payload import END
from pmagent.contracts.pla import (
    COORDINATE_MAX,
    COORDINATE_MIN,
    KEYS,
    KEYS_MAX,
    MODIFIERS,
    OCR_CHARS_MAX,
    RATIONALE_CHARS_MAX,
    RATIONALE_CHARS_MIN,
    REASON_CHARS_MAX,
    TEXT_CHARS_MAX,
    Action,
    ActionType,
    BootId,
    Button,
    Decision,
    DeviceId,
    KeyCombo,
    KillSwitch,
    Layout,
    MouseClick,
    MouseMove,
    PlaId,
    PlaMode,
    TypeText,
    typable,
)
from pmagent.contracts.pla_moment import VISIBLE, Checksum, Count, FirmwareVersion, Moment, Version

ELEMENTS_MAX = 200
DETAILS_MAX = 32
DETAIL_CHARS_MAX = 2000
DETAIL_INTEGER_MAX = 2**53 - 1
"""A number in JSON is exact up to here in every language."""
LEASE_MS_MAX = 5000

# --- actions ------------------------------------------------------------------------------------------------------


def _ranges(characters: str) -> str:
    """The characters, in order, as a pattern's class has them."""
    found: list[list[str]] = []
    for one in characters:
        if found and ord(one) == ord(found[-1][1]) + 1:
            found[-1][1] = one
        else:
            found.append([one, one])
    return "".join(first if first == last else f"{first}-{last}" for first, last in found)


TYPABLE: Final = rf"^[\t\n{_ranges(typable()[2:])}]*" + END
"""Text of characters that some layout types."""
Typable = Annotated[
    str,
    Meta(
        min_length=1, max_length=TEXT_CHARS_MAX, pattern=TYPABLE,
        description="what the layout types; without one, what a US keyboard types: printable ASCII, tab and newline",
    ),
]  # fmt: skip
LayoutName = Annotated[Layout, Meta(description="of the machine that it is typed on")]
Keys = Annotated[
    list[Any],
    Meta(
        extra_json_schema={
            "items": {"type": "string", "enum": list(KEYS)}, "minItems": 1, "maxItems": KEYS_MAX, "uniqueItems": True,
            "description": "pressed together; one at least is no modifier, unless it stands alone",
            "anyOf": [{"maxItems": 1}, {"contains": {"not": {"enum": list(MODIFIERS)}}}],
        },
    ),
]  # fmt: skip
Coordinate = Annotated[int, Meta(ge=COORDINATE_MIN, le=COORDINATE_MAX)]


class ActionForm(msgspec.Struct, frozen=True):
    """An action: its type in events, and the fields that ``payload`` has in documents, and those that it may have."""

    type: type[Action]
    payload: dict[str, Any]
    description: str = ""
    optional: dict[str, Any] = {}


ACTIONS: Final[dict[ActionType, ActionForm]] = {
    "TYPE_TEXT": ActionForm(TypeText, {"text": Typable}, optional={"layout": LayoutName}),
    "KEY_COMBO": ActionForm(KeyCombo, {"keys": Keys}, optional={"layout": LayoutName}),
    "MOUSE_MOVE": ActionForm(
        MouseMove, {"x": Coordinate, "y": Coordinate}, "steps to the right and down from where it is"
    ),
    "MOUSE_CLICK": ActionForm(MouseClick, {"button": Button}),
}
"""Every action that may be proposed and executed."""

ActionPayload = Annotated[dict[str, Any], Meta(description="what action_type says; see allOf")]


class ProposalBounds(Document, frozen=True, kw_only=True):
    """The bounds that a proposal keeps; they are what they are."""

    max_chars: Literal[1024]
    rate_limit_ms: Literal[100]


class ExecuteBounds(Document, frozen=True, kw_only=True):
    """The bounds that the device enforces; they are what they are."""

    max_text_length: Literal[1024]
    min_action_delay_ms: Literal[100]


class ScreenContext(Document, frozen=True, kw_only=True):
    """The screen that a proposal rests on."""

    ocr_text: Annotated[str, Meta(max_length=OCR_CHARS_MAX)] | UnsetType = UNSET
    detected_elements: (
        Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=ELEMENTS_MAX)] | UnsetType
    ) = UNSET


class ActionProposal(Document, frozen=True, kw_only=True):
    """Brain to operator: what might be typed. ``action_type`` says which payload it has."""

    proposal_id: PlaId
    timestamp: Moment
    mode: PlaMode
    action_type: ActionType
    payload: ActionPayload
    rationale: Annotated[
        str,
        Meta(
            min_length=RATIONALE_CHARS_MIN, max_length=RATIONALE_CHARS_MAX, pattern=VISIBLE,
            description="why this is proposed",
        ),
    ]  # fmt: skip
    credential_warning: Annotated[bool, Meta(description="credentials were found in it")]
    safety_bounds: ProposalBounds
    screen_context: ScreenContext | UnsetType = UNSET


class ActionDecision(Document, frozen=True, kw_only=True):
    """Operator to brain. A rejection says why; ``digest`` is that of the bytes that were shown."""

    proposal_id: PlaId
    decision: Decision
    timestamp: Moment
    operator_id: OperatorId
    override_reason: (
        Annotated[
            str, Meta(min_length=1, max_length=REASON_CHARS_MAX, pattern=VISIBLE, description="why it is rejected")
        ]
        | UnsetType
    ) = UNSET
    credential_acknowledged: (
        Annotated[bool, Meta(description="the operator knows of the credentials in it")] | UnsetType
    ) = UNSET
    digest: Annotated[Checksum, Meta(description="of the canonical action that was shown")] | UnsetType = UNSET


class OperatorApproval(Document, frozen=True, kw_only=True):
    """The operator who approved the execution, and when; ``digest`` is that of the action."""

    decision_timestamp: Moment
    operator_id: OperatorId
    digest: Annotated[Checksum, Meta(description="of the canonical action that was approved")] | UnsetType = UNSET


class ActionExecute(Document, frozen=True, kw_only=True):
    """Brain to device: what is to be typed. ``action_type`` says which payload it has."""

    execution_id: PlaId
    proposal_id: PlaId
    timestamp: Moment
    mode: Literal["EXECUTE"]
    action_type: ActionType
    payload: ActionPayload
    safety_bounds: ExecuteBounds
    operator_approval: Annotated[OperatorApproval, Meta(description="who approved it, and when")]


def action_of(document: ActionProposal | ActionExecute) -> Action:
    """The action that a checked document proposes or demands. Raises msgspec.ValidationError for a payload that is not
    of the document's ``action_type``."""
    return msgspec.convert(document.payload, ACTIONS[document.action_type].type)


# --- session_log --------------------------------------------------------------------------------------------------

EntryType = Literal["PROPOSAL", "DECISION", "EXECUTION", "ERROR", "MODE_CHANGE"]
DetailInteger = Annotated[int, Meta(ge=-DETAIL_INTEGER_MAX, le=DETAIL_INTEGER_MAX)]
Detail = Annotated[str, Meta(max_length=DETAIL_CHARS_MAX)] | DetailInteger | bool
DetailName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}" + END)]


class NamedDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Details whose meaning the contract fixes; there may be others."""

    action_type: ActionType | UnsetType = UNSET
    payload_summary: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    decision: Decision | UnsetType = UNSET
    error_message: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET
    old_mode: PlaMode | UnsetType = UNSET
    new_mode: PlaMode | UnsetType = UNSET
    credential_warning: bool | UnsetType = UNSET


class SessionLogEntry(Document, frozen=True, kw_only=True):
    """A line of a session's log. ``checksum`` is the SHA-256 of the entry's canonical form without it, in which the one
    before stands (64 zeros in the first)."""

    log_id: PlaId
    timestamp: Moment
    event_type: EntryType
    mode: PlaMode
    proposal_id: PlaId | UnsetType = UNSET
    execution_id: PlaId | UnsetType = UNSET
    operator_id: Annotated[OperatorId, Meta(description="who was responsible")]
    details: Annotated[dict[DetailName, Detail], Meta(max_length=DETAILS_MAX, extra={"named": NamedDetails})]
    checksum: Annotated[Checksum, Meta(description="of the entry's canonical JSON without this")]
    previous_log_checksum: Annotated[Checksum, Meta(description="of the entry before; 64 zeros in the first")]


# --- device_status and hello --------------------------------------------------------------------------------------

DeviceError = Literal[
    "NONE", "COMMAND_PARSE_ERROR", "BOUNDS_VIOLATION", "MODE_MISMATCH", "RATE_LIMIT_EXCEEDED", "USB_HID_FAILURE",
    "UNKNOWN_ERROR",
]  # fmt: skip
AbortCode = Literal["", "KILLED", "DISARMED", "LEASE", "LINK", "USB", "CAPS_LOCK", "MEMORY", "WATCHDOG"]
Switch = Annotated[KillSwitch, Meta(description="ARMED: the switch is ready; DISABLED: it was hit, cut or unplugged")]
Boot = Annotated[BootId, Meta(description="drawn by the device at each boot")]
No = Annotated[bool, Meta(extra_json_schema={"const": False})]


class ErrorState(Document, frozen=True, kw_only=True):
    """The device's last error, and how many there were since boot."""

    has_error: bool
    error_code: DeviceError
    error_message: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    error_count: Count | UnsetType = UNSET


class ExecutionReport(Document, frozen=True, kw_only=True):
    """The device's knowledge of an execution: ``done`` of its ``of`` reports are sent. NONE has no digest."""

    execution_id: PlaId
    state: ExecutionState
    digest: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?" + END, description="none where it was never heard of")]
    done: Annotated[Count, Meta(description="reports that were handed to USB")]
    of: Count
    code: AbortCode


class DeviceStatus(Document, frozen=True, kw_only=True):
    """Device to brain, each second and when asked. ARMED of the switch means that it is ready, ``led_state`` that the
    device is armed; ``lease_ms``: so long it stays so."""

    device_id: DeviceId
    timestamp: Moment
    mode: PlaMode
    led_state: Annotated[bool, Meta(description="the light, which is on exactly while it is armed")]
    kill_switch_state: Switch
    uptime_seconds: Count
    last_execution_time: Moment | UnsetType = UNSET
    error_state: Annotated[ErrorState, Meta(description="the last error, and how many")] | UnsetType = UNSET
    firmware_version: FirmwareVersion | UnsetType = UNSET
    action_count: Count | UnsetType = UNSET
    contract_version: Version | UnsetType = UNSET
    contract_hash: Checksum | UnsetType = UNSET
    boot_id: Boot | UnsetType = UNSET
    caps_lock: bool | UnsetType = UNSET
    lease_ms: Annotated[int, Meta(ge=0, le=LEASE_MS_MAX, description="so long it stays armed")] | UnsetType = UNSET
    execution: (
        Annotated[ExecutionReport, Meta(description="what the device knows of the execution that was asked for")]
        | UnsetType
    ) = UNSET


class Hello(Document, frozen=True, kw_only=True):
    """Device to brain, at the beginning: who it is, what it was built for. It is never armed then."""

    device_id: DeviceId
    boot_id: Boot
    contract_version: Version
    contract_hash: Checksum
    firmware_version: FirmwareVersion
    reset_reason: Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_ -]{0,31}" + END)]
    kill_switch_state: Switch
    led_state: No
    armed: No
    max_line: Annotated[Literal[2048], Meta(description="bytes of a line, newline included")]
    layout: Annotated[Literal["us"], Meta(description="what names no layout is typed by it, if at all")]
    remembers: Annotated[Literal[64], Meta(description="executions that it answers for")]
    practice: (
        Annotated[bool, Meta(description="what it types goes to no machine, so it needs no declared layout")]
        | UnsetType
    ) = UNSET


TYPES: Final[dict[str, Any]] = {
    "action_proposal": Annotated[
        ActionProposal, Meta(description="What the brain proposes to an operator (brain to operator).")
    ],
    "action_decision": Annotated[
        ActionDecision, Meta(description="What an operator decides on a proposal (operator to brain).")
    ],
    "action_execute": Annotated[ActionExecute, Meta(description="An approved action (brain to device).")],
    "session_log": Annotated[SessionLogEntry, Meta(description="An entry of a session's log: entries form a chain.")],
    "device_status": Annotated[DeviceStatus, Meta(description="How the device stands (device to brain).")],
    "hello": Annotated[
        Hello, Meta(description="Who the device is, and which contracts it was built for (device to brain).")
    ],
    "job_status": Annotated[JobStatus, Meta(description="How a job stands, in the one shape for every service.")],
    "job_manifest": Annotated[
        JobManifest, Meta(description="The public assets of a job, by their places below /assets/.")
    ],
}
"""Contract -> type, with the description of its schema."""
