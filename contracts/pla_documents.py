"""The documents that brain, operator and device hand each other (docs/design.md §16.1).

Their JSON Schemas are written by hand, in ``pmagent.contracts.pla_schemas``; tests hold both to accept the same
documents. What has to do with each other in a document is checked when it is made, so that no wrong one can be built
either: msgspec turns the ValueError into its ValidationError when it decodes.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, assert_never

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
    BootId,
    Button,
    Decision,
    DeviceId,
    KeyCombo,
    KillSwitch,
    MouseClick,
    MouseMove,
    PlaId,
    PlaMode,
    TypeText,
)
from pmagent.contracts.pla_moment import VISIBLE, Checksum, Count, Digest, FirmwareVersion, Moment, Version

ELEMENTS_MAX = 200
DETAILS_MAX = 32
DETAIL_CHARS_MAX = 2000
DETAIL_INTEGER_MAX = 2**53 - 1
"""A number in JSON is exact up to here in every language."""
LEASE_MS_MAX = 5000

Reason = Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX, pattern=VISIBLE)]
Typable = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX, pattern=r"^[\t\n -~]*" + END)]
Coordinate = Annotated[int, Meta(ge=COORDINATE_MIN, le=COORDINATE_MAX)]

# --- actions ------------------------------------------------------------------------------------------------------


class TextPayload(Document, frozen=True, kw_only=True):
    """What TYPE_TEXT types: printable ASCII, tab and newline."""

    text: Typable


class KeysPayload(Document, frozen=True, kw_only=True):
    """What KEY_COMBO presses together: each key once, and one at least that is no modifier unless it stands alone."""

    keys: Annotated[list[str], Meta(min_length=1, max_length=KEYS_MAX)]

    def __post_init__(self) -> None:
        """Raises ValueError for keys that make no combination."""
        if not all(key in KEYS for key in self.keys):
            raise ValueError("there is no such key")
        if len(set(self.keys)) < len(self.keys):
            raise ValueError("a key is named twice")
        if len(self.keys) > 1 and all(key in MODIFIERS for key in self.keys):
            raise ValueError("of several keys one at least is no modifier")


class MovePayload(Document, frozen=True, kw_only=True):
    """How far MOUSE_MOVE moves the pointer: right and down, in the mouse's own steps."""

    x: Coordinate
    y: Coordinate


class ClickPayload(Document, frozen=True, kw_only=True):
    """What MOUSE_CLICK presses."""

    button: Button


ActionPayload = TextPayload | KeysPayload | MovePayload | ClickPayload


class ProposalBounds(Document, frozen=True, kw_only=True):
    """The bounds that a proposal keeps; they are what they are."""

    max_chars: Literal[1024]
    rate_limit_ms: Literal[100]


class ExecuteBounds(Document, frozen=True, kw_only=True):
    """The bounds that the device enforces; they are what they are."""

    max_text_length: Literal[1024]
    min_action_delay_ms: Literal[100]


# --- action_proposal ----------------------------------------------------------------------------------------------


class ScreenContext(Document, frozen=True, kw_only=True):
    """What stood on the screen that a proposal rests on."""

    ocr_text: Annotated[str, Meta(max_length=OCR_CHARS_MAX)] | UnsetType = UNSET
    detected_elements: (
        Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=ELEMENTS_MAX)] | UnsetType
    ) = UNSET


class _Proposal(Document, frozen=True, kw_only=True, tag_field="action_type"):
    proposal_id: PlaId
    timestamp: Moment
    mode: PlaMode
    rationale: Annotated[str, Meta(min_length=RATIONALE_CHARS_MIN, max_length=RATIONALE_CHARS_MAX, pattern=VISIBLE)]
    credential_warning: bool
    safety_bounds: ProposalBounds
    screen_context: ScreenContext | UnsetType = UNSET


class TextProposal(_Proposal, frozen=True, kw_only=True, tag="TYPE_TEXT"):
    """A proposal to type a text."""

    payload: TextPayload


class KeysProposal(_Proposal, frozen=True, kw_only=True, tag="KEY_COMBO"):
    """A proposal to press a combination of keys."""

    payload: KeysPayload


class MoveProposal(_Proposal, frozen=True, kw_only=True, tag="MOUSE_MOVE"):
    """A proposal to move the pointer."""

    payload: MovePayload


class ClickProposal(_Proposal, frozen=True, kw_only=True, tag="MOUSE_CLICK"):
    """A proposal to press a button of the mouse."""

    payload: ClickPayload


ActionProposal = TextProposal | KeysProposal | MoveProposal | ClickProposal
"""Brain to operator: what might be typed. ``action_type`` says which payload it has."""

# --- action_decision ----------------------------------------------------------------------------------------------


class ActionDecision(Document, frozen=True, kw_only=True):
    """Operator to brain. A rejection says why; ``digest`` is that of the bytes that were shown."""

    proposal_id: PlaId
    decision: Decision
    timestamp: Moment
    operator_id: OperatorId
    override_reason: Reason | UnsetType = UNSET
    credential_acknowledged: bool | UnsetType = UNSET
    digest: Digest | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError for a rejection without a reason."""
        if self.decision == "REJECTED" and self.override_reason is UNSET:
            raise ValueError("a rejection has an override_reason")


# --- action_execute -----------------------------------------------------------------------------------------------


class OperatorApproval(Document, frozen=True, kw_only=True):
    """Who approved the execution, and when; ``digest`` is what of."""

    decision_timestamp: Moment
    operator_id: OperatorId
    digest: Digest | UnsetType = UNSET


class _Execute(Document, frozen=True, kw_only=True, tag_field="action_type"):
    execution_id: PlaId
    proposal_id: PlaId
    timestamp: Moment
    mode: Literal["EXECUTE"]
    safety_bounds: ExecuteBounds
    operator_approval: OperatorApproval


class TextExecute(_Execute, frozen=True, kw_only=True, tag="TYPE_TEXT"):
    """Type a text."""

    payload: TextPayload


class KeysExecute(_Execute, frozen=True, kw_only=True, tag="KEY_COMBO"):
    """Press a combination of keys."""

    payload: KeysPayload


class MoveExecute(_Execute, frozen=True, kw_only=True, tag="MOUSE_MOVE"):
    """Move the pointer."""

    payload: MovePayload


class ClickExecute(_Execute, frozen=True, kw_only=True, tag="MOUSE_CLICK"):
    """Press a button of the mouse."""

    payload: ClickPayload


ActionExecute = TextExecute | KeysExecute | MoveExecute | ClickExecute
"""Brain to device: what is to be typed. ``action_type`` says which payload it has."""


def action_of(document: ActionProposal | ActionExecute) -> Action:
    """The action that a document proposes or demands."""
    match document.payload:
        case TextPayload(text=text):
            return TypeText(text=text)
        case KeysPayload(keys=keys):
            return KeyCombo(keys=list(keys))
        case MovePayload(x=x, y=y):
            return MouseMove(x=x, y=y)
        case ClickPayload(button=button):
            return MouseClick(button=button)
        case payload:
            assert_never(payload)


# --- session_log --------------------------------------------------------------------------------------------------

EntryType = Literal["PROPOSAL", "DECISION", "EXECUTION", "ERROR", "MODE_CHANGE"]
DetailInteger = Annotated[int, Meta(ge=-DETAIL_INTEGER_MAX, le=DETAIL_INTEGER_MAX)]
Detail = Annotated[str, Meta(max_length=DETAIL_CHARS_MAX)] | DetailInteger | bool
DetailName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}" + END)]


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    """Details whose meaning the contract fixes; there may be others."""

    action_type: Literal["TYPE_TEXT", "KEY_COMBO", "MOUSE_MOVE", "MOUSE_CLICK"] | UnsetType = UNSET
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
    operator_id: OperatorId
    details: Annotated[dict[DetailName, Detail], Meta(max_length=DETAILS_MAX)]
    checksum: Checksum
    previous_log_checksum: Checksum
    proposal_id: PlaId | UnsetType = UNSET
    execution_id: PlaId | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError for a detail of another shape than its name has."""
        msgspec.convert(self.details, _Details)


# --- device_status and hello --------------------------------------------------------------------------------------

DeviceError = Literal[
    "NONE", "COMMAND_PARSE_ERROR", "BOUNDS_VIOLATION", "MODE_MISMATCH", "RATE_LIMIT_EXCEEDED", "USB_HID_FAILURE",
    "UNKNOWN_ERROR",
]  # fmt: skip
AbortCode = Literal["", "KILLED", "DISARMED", "LEASE", "LINK", "USB", "CAPS_LOCK", "MEMORY", "WATCHDOG"]
ReportDigest = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?" + END)]


class ErrorState(Document, frozen=True, kw_only=True):
    """The device's last error, and how many there were since boot."""

    has_error: bool
    error_code: DeviceError
    error_message: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    error_count: Count | UnsetType = UNSET


class ExecutionTold(Document, frozen=True, kw_only=True):
    """What the device knows of an execution: ``done`` of its ``of`` reports are sent. NONE has no digest."""

    execution_id: PlaId
    state: ExecutionState
    digest: ReportDigest
    done: Count
    of: Count
    code: AbortCode


class DeviceStatus(Document, frozen=True, kw_only=True):
    """Device to brain, each second and when asked. ARMED of the switch means that it is ready, ``led_state`` that the
    device is armed; ``lease_ms``: so long it stays so."""

    device_id: DeviceId
    timestamp: Moment
    mode: PlaMode
    led_state: bool
    kill_switch_state: KillSwitch
    uptime_seconds: Count
    last_execution_time: Moment | UnsetType = UNSET
    error_state: ErrorState | UnsetType = UNSET
    firmware_version: FirmwareVersion | UnsetType = UNSET
    action_count: Count | UnsetType = UNSET
    contract_version: Version | UnsetType = UNSET
    contract_hash: Checksum | UnsetType = UNSET
    boot_id: BootId | UnsetType = UNSET
    caps_lock: bool | UnsetType = UNSET
    lease_ms: Annotated[int, Meta(ge=0, le=LEASE_MS_MAX)] | UnsetType = UNSET
    execution: ExecutionTold | UnsetType = UNSET


class Hello(Document, frozen=True, kw_only=True):
    """Device to brain, at the beginning: who it is, what it was built for. It is never armed then."""

    device_id: DeviceId
    boot_id: BootId
    contract_version: Version
    contract_hash: Checksum
    firmware_version: FirmwareVersion
    reset_reason: Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_ -]{0,31}" + END)]
    kill_switch_state: KillSwitch
    led_state: bool
    armed: bool
    max_line: Literal[2048]
    layout: Literal["us"]
    remembers: Literal[64]

    def __post_init__(self) -> None:
        """Raises ValueError for a device that says it is armed."""
        if self.armed or self.led_state:
            raise ValueError("a device is not armed at hello, and its light is off")


PlaDocument = (
    ActionProposal | ActionDecision | ActionExecute | SessionLogEntry | DeviceStatus | Hello | JobStatus | JobManifest
)

TYPES: Final[dict[str, Any]] = {
    "action_proposal": ActionProposal,
    "action_decision": ActionDecision,
    "action_execute": ActionExecute,
    "session_log": SessionLogEntry,
    "device_status": DeviceStatus,
    "hello": Hello,
    "job_status": JobStatus,
    "job_manifest": JobManifest,
}
"""Contract -> type. The schemas of the same names accept the same documents."""
