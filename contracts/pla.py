"""Typing and the words for it: modes, actions, their bounds, and the digest that an approval is bound to
(docs/design.md §16.2)."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from pmagent.contracts.payload import END
from pmagent.firmware.layout import presses
from pmagent.firmware.layouts import COMPOSED, LAYOUTS

CONTRACT_VERSION: Final = "1.1.0"
"""Of the PLA's contracts; the wire's hello and each device status carry it beside the hash of the schemas."""

PlaMode = Literal["OBSERVE", "SUGGEST", "EXECUTE"]
MODES: Final[tuple[PlaMode, ...]] = ("OBSERVE", "SUGGEST", "EXECUTE")
"""From the lowest to the highest."""

ActionType = Literal["TYPE_TEXT", "KEY_COMBO", "MOUSE_MOVE", "MOUSE_CLICK"]
KillSwitch = Literal["ARMED", "DISABLED", "UNKNOWN"]
"""ARMED: the switch is ready, typing is possible; DISABLED: it was hit, cut or unplugged."""
Button = Literal["left", "right", "middle"]
Layout = Literal["us", "uk", "de", "fr", "es", "it", "se", "no", "dk", "fi", "ch-de", "ch-fr"]
"""The keyboard layouts whose tables the device has (``pmagent.firmware.layouts``)."""
Decision = Literal["APPROVED", "REJECTED"]

TEXT_CHARS_MAX: Final = 1024
MIN_ACTION_DELAY_MS: Final = 100
"""Between the end of one action and the beginning of the next, at the device."""
KEYS_MAX: Final = 6
"""A keyboard's report holds so many keys beside its modifiers."""
COORDINATE_MIN: Final = -1000
COORDINATE_MAX: Final = 5000
RATIONALE_CHARS_MIN: Final = 10
RATIONALE_CHARS_MAX: Final = 2000
OCR_CHARS_MAX: Final = 10_000
REASON_CHARS_MAX: Final = 500

APPROVAL_SECONDS: Final = 60.0
"""So long an approval may be used."""
CREDENTIAL_SECONDS: Final = 5.0
"""So long a proposal with credentials stands before it can be approved."""
LEASE_SECONDS: Final = 2.0
"""A device stays armed for so long after the last arm or ping."""
PING_SECONDS: Final = 0.5
"""Between two pings of whoever holds the line."""
HEARTBEAT_SECONDS: Final = 3.0
"""A device that was not heard for so long is lost."""
BY_LINE_SINCE: Final = (1, 1)
"""The contract since which the line's owner renews the lease, and a text names the layout that it is typed by."""
EXECUTIONS_REMEMBERED: Final = 64
"""A device answers for so many of its last executions."""

UNDECLARED: Final = "the machine's keyboard layout is not declared, and without one only a practice device types"
DECLARE: Final = 'layout = "us" (or de, fr, …) under [pla] in .pmagent/config.toml declares it; then propose it again'

MODIFIERS: Final = ("ctrl", "shift", "alt", "gui")
KEYS: Final = (
    *MODIFIERS,
    *"abcdefghijklmnopqrstuvwxyz0123456789",
    *(f"f{number}" for number in range(1, 13)),
    "up", "down", "left", "right", "home", "end", "page_up", "page_down",
    "enter", "escape", "tab", "space", "backspace", "delete", "insert",
)  # fmt: skip
"""Every key that a combination may name, in lower case."""

PlaId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+" + END, min_length=8, max_length=64)]
NOBODY: Final = "pmagent"
"""Responsible where no operator is: for actions of the system itself. No operator has this name."""
DeviceId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_:-]+" + END, min_length=8, max_length=64)]
BootId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}" + END)]
"""Drawn by the device at each boot: what it remembers ends with it."""
ActionClass = Literal["feature_work", "ops_blocks", "migrations", "phase_transitions", "remediation", "diagnostic"]
"""The class by which the kernel's mode judges typing: the OA grants or refuses permits for it."""
CredentialPolicy = Literal["refuse", "acknowledge"]


class _Action(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, tag_field="action_type"
):
    """Base of the four actions; ``action_type`` tells them apart."""


class TypeText(_Action, frozen=True, kw_only=True, tag="TYPE_TEXT"):
    """Type ``text``, as it is or, in an event that says so, with its secrets masked. ``layout`` is that of the machine
    it is typed on ("": none was declared)."""

    text: str
    layout: str = ""


class KeyCombo(_Action, frozen=True, kw_only=True, tag="KEY_COMBO"):
    """Press ``keys`` together and release them; ``layout`` as of a text."""

    keys: list[str]
    layout: str = ""


class MouseMove(_Action, frozen=True, kw_only=True, tag="MOUSE_MOVE"):
    """Move the pointer by ``x`` to the right and ``y`` down, in the mouse's own steps."""

    x: int
    y: int


class MouseClick(_Action, frozen=True, kw_only=True, tag="MOUSE_CLICK"):
    """Press ``button`` and release it."""

    button: str


Action = TypeText | KeyCombo | MouseMove | MouseClick
"""The action of a proposal. Its fields are as they came; ``objections`` says what is wrong with them."""

Unfit = Literal["schema_validation", "missing_field", "bound_exceeded"]
"""The rows of the specification's table of violations that an action can belong to."""


class Objection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why an action may not be proposed: the kind of violation, and a text for people."""

    kind: Unfit
    text: str


def action_type(action: Action) -> ActionType:
    """The action's type, by its name in the contracts."""
    tag: ActionType = type(action).__struct_config__.tag  # type: ignore[assignment]
    return tag


def payload(action: Action) -> dict[str, Any]:
    """The action's ``payload`` as the contracts have it."""
    plain: dict[str, Any] = msgspec.to_builtins(action)
    del plain["action_type"]
    return plain


def digest(action: Action) -> str:
    """SHA-256 (hex) of the action's canonical form: the JSON object of ``action_type`` and ``payload``, keys sorted, no
    spaces, ASCII only. An approval holds for just this; the device computes it again from what it is given."""
    canonical = {"action_type": action_type(action), "payload": payload(action)}
    return sha256(json.dumps(canonical, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def objections(action: Action) -> list[Objection]:
    """The objections to an action in its plain form; none when it may be typed."""
    match action:
        case TypeText(text=text, layout=layout):
            return _layout(layout) or list(_text(text, layout))
        case KeyCombo(keys=keys, layout=layout):
            return _layout(layout) or list(_keys(keys))
        case MouseMove(x=x, y=y):
            return [
                Objection(kind="bound_exceeded", text=f"{name} is {value}, not {COORDINATE_MIN} to {COORDINATE_MAX}")
                for name, value in (("x", x), ("y", y))
                if not COORDINATE_MIN <= value <= COORDINATE_MAX
            ]
        case MouseClick(button=button):
            if button not in ("left", "right", "middle"):
                return [Objection(kind="schema_validation", text="the button is none of left, right, middle")]
    return []


def is_typable(character: str, layout: str = "") -> bool:
    """Whether a keyboard with this layout types it; where none is declared, a US one: printable ASCII, tab, newline."""
    if layout:
        return presses(character, layout) is not None
    return " " <= character <= "~" or character in "\t\n"


def typable() -> str:
    """Every character that some layout types, in order."""
    characters = {one for levels in LAYOUTS.values() for level in levels for one in level}.union(COMPOSED)
    return "".join(one for one in sorted(characters) if any(is_typable(one, layout) for layout in LAYOUTS))


def declared(action: Action, layout: str) -> Action:
    """The action as it is typed on a machine with this layout; the pointer has none."""
    return msgspec.structs.replace(action, layout=layout) if isinstance(action, TypeText | KeyCombo) else action


def layout_of(action: Action) -> str | None:
    """The layout that an action is typed by ("": none was declared); None where that makes no difference."""
    return action.layout if isinstance(action, TypeText | KeyCombo) else None


def _layout(layout: str) -> list[Objection]:
    if not layout or layout in LAYOUTS:
        return []
    return [Objection(kind="schema_validation", text=f"there is no layout {layout[:32]!a}")]


def _text(text: str, layout: str) -> list[Objection]:
    found: list[Objection] = []
    if not text:
        found.append(Objection(kind="missing_field", text="the text is empty"))
    if len(text) > TEXT_CHARS_MAX:
        found.append(
            Objection(kind="bound_exceeded", text=f"the text has {len(text)} characters, not at most {TEXT_CHARS_MAX}")
        )
    for at, character in enumerate(text):
        if not is_typable(character, layout):
            whose = f"the layout {layout}" if layout else "a US keyboard"
            what = f"character {at + 1} is U+{ord(character):04X}, which {whose} cannot type"
            found.append(Objection(kind="schema_validation", text=what))
            break
    return found


def _keys(keys: list[str]) -> list[Objection]:
    found: list[Objection] = []
    if not keys:
        found.append(Objection(kind="missing_field", text="there is no key"))
    unknown = [key for key in keys if key not in KEYS]
    if unknown:
        found.append(Objection(kind="schema_validation", text=f"there is no key {unknown[0][:32]!a}"))
    if len(set(keys)) < len(keys):
        found.append(Objection(kind="schema_validation", text="a key is named twice"))
    plain = [key for key in keys if key not in MODIFIERS]
    if len(keys) > KEYS_MAX or (keys and not plain and len(keys) > 1):
        what = f"at most {KEYS_MAX} keys, and one of them no modifier unless it stands alone"
        found.append(Objection(kind="bound_exceeded", text=what))
    return found
