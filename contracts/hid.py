"""The HID link's events: the device as it is heard, and what is asked of it (docs/design.md §16.6).

Facts ``hid.linked``, ``hid.reported`` and ``hid.lost`` come from whoever holds the serial line; the others are outcomes
of effects. One of these types keys: ``hid.commit_requested``, which is outward and never repeated.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, event_type
from pmagent.contracts.pla import BY_LINE_SINCE, Action, ActionClass, ActionType, KillSwitch, PlaMode

ExecutionState = Literal["NONE", "PREPARED", "RUNNING", "DONE", "ABORTED"]
"""A device's knowledge of an execution: nothing, all of it but no order to begin, being typed, all reports sent, ended
before that."""

ARM_SUBJECT: Final = "hid:arm:"
"""The beginning of the subject of a permit for arming; the device's id follows."""

LEASE_RENEWED_SECONDS: Final = 3600.0
"""So long a lease is renewed for one request."""
LEASE_LIMIT_SECONDS: Final = LEASE_RENEWED_SECONDS + 60.0

Word = Annotated[str, Meta(max_length=200)]
Sentence = Annotated[str, Meta(max_length=2000)]

# --- the device as it is heard (facts) ----------------------------------------------------------------------------


@event_type("hid.linked")
class HidLinked(Payload, frozen=True, kw_only=True):
    """A device answered hello on ``port``. ``compatible``: its contract is ours; if not, ``text`` says what differs.
    ``practice``: what it types goes to no machine."""

    device_id: Word
    boot_id: Word
    port: Annotated[str, Meta(max_length=4096)]
    contract_version: Word
    contract_hash: Word
    firmware_version: Word
    reset_reason: Word
    kill_switch_state: KillSwitch
    compatible: bool
    text: Sentence = ""
    practice: bool = False

    @property
    def by_line(self) -> bool:
        """Whether the line's owner renews its lease; by contracts before that each ping stood in the log."""
        numbers = [int(part) for part in self.contract_version.split(".") if part.isdecimal()]
        return numbers[:2] >= list(BY_LINE_SINCE)

    @property
    def undeclared(self) -> bool:
        """Whether it types what names no layout."""
        return self.practice or not self.by_line


@event_type("hid.reported")
class HidReported(Payload, frozen=True, kw_only=True):
    """The device's status changed in something that matters (its reports come each second; those that say the same are
    not recorded)."""

    boot_id: Word
    mode: PlaMode
    led_state: bool
    kill_switch_state: KillSwitch
    error_code: Word = "NONE"
    error_message: Annotated[str, Meta(max_length=500)] = ""
    error_count: int = 0
    action_count: int = 0
    caps_lock: bool = False


@event_type("hid.lost")
class HidLost(Payload, frozen=True, kw_only=True):
    """The device is not heard any more. ``code``: unplugged, stale, silent, closed, reset, garbled or taken."""

    boot_id: Word
    code: Word
    text: Sentence


# --- what is asked of it ------------------------------------------------------------------------------------------

_UNDONE: Final = ("hid.refused", "hid.silent")
"""How each of these may end besides with its own answer."""


@event_type(
    "hid.arm_requested",
    effect=Effect(repeatable=False, limit_s=10.0, concurrency=1, attended=True, outcomes=("hid.armed", *_UNDONE)),
)
class HidArmRequested(OutwardRequest, frozen=True, kw_only=True):
    """Arm the device with this boot, for a lease that pings renew. Outward: from here on it can type."""

    waits: ClassVar[bool] = False
    device_id: str
    boot_id: str
    action_class: ActionClass

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return arm_scope(self.action_class, self.device_id)


def arm_scope(action_class: ActionClass, device_id: str) -> Scope:
    """The scope of the permit for arming."""
    return Scope(action_class, f"{ARM_SUBJECT}{device_id}")


class DeviceAnswer(Payload, frozen=True, kw_only=True):
    """A device's answer, or its silence, to the request at position ``request``."""

    request: int
    boot_id: Word


@event_type("hid.armed")
class HidArmed(DeviceAnswer, frozen=True, kw_only=True):
    """The device is armed, its light is on."""

    lease_ms: int


@event_type(
    "hid.disarm_requested",
    effect=Effect(repeatable=True, limit_s=10.0, concurrency=4, outcomes=("hid.disarmed", *_UNDONE)),
)
class HidDisarmRequested(Payload, frozen=True, kw_only=True):
    """Disarm whatever device there is; this ends what it types. Without an answer its lease ends it."""

    boot_id: str
    why: str


@event_type("hid.disarmed")
class HidDisarmed(DeviceAnswer, frozen=True, kw_only=True):
    """The device answered that it is not armed."""


@event_type(
    "hid.ping_requested",
    effect=Effect(repeatable=False, limit_s=30.0, concurrency=4, attended=True, outcomes=("hid.pinged", *_UNDONE)),
)
class HidPingRequested(Payload, frozen=True, kw_only=True):
    """At ``at`` (log time), renew the lease of the device with this boot."""

    boot_id: str
    at: str


@event_type("hid.pinged")
class HidPinged(DeviceAnswer, frozen=True, kw_only=True):
    """It answered: armed or not, and how its switch stands."""

    armed: bool
    kill_switch_state: KillSwitch


@event_type(
    "hid.lease_requested",
    effect=Effect(
        repeatable=False, limit_s=LEASE_LIMIT_SECONDS, concurrency=4, attended=True,
        outcomes=("hid.lease_ended", *_UNDONE),
    ),
)
class HidLeaseRequested(Payload, frozen=True, kw_only=True):
    """From now on, whoever holds the line renews the lease of the device with this boot, until this is cancelled; no
    ping of it stands in the log."""

    boot_id: str


@event_type("hid.lease_ended")
class HidLeaseEnded(DeviceAnswer, frozen=True, kw_only=True):
    """The lease is not renewed any more: the device is not ``armed``, or its switch is not ready; or it is, and this is
    to be asked for again."""

    armed: bool
    kill_switch_state: KillSwitch


@event_type(
    "hid.prepare_requested",
    effect=Effect(repeatable=True, limit_s=30.0, concurrency=1, outcomes=("hid.prepared", *_UNDONE)),
)
class HidPrepareRequested(Payload, frozen=True, kw_only=True):
    """Hand the device what it is to type, and let it check all of it; nothing is typed. ``masked``: the plain action is
    in this process's memory, by its ``digest``, or nowhere."""

    boot_id: str
    execution_id: str
    proposal_id: str
    digest: str
    action: Action
    masked: bool
    operator_id: str
    decided_at: str


@event_type("hid.prepared")
class HidPrepared(DeviceAnswer, frozen=True, kw_only=True):
    """The device holds the execution, whose digest it computed itself; ``of``: so many reports it will send."""

    execution_id: Word
    digest: Word
    of: int


@event_type(
    "hid.commit_requested",
    effect=Effect(repeatable=False, limit_s=180.0, concurrency=1, attended=True, outcomes=("hid.ended", *_UNDONE)),
)
class HidCommitRequested(OutwardRequest, frozen=True, kw_only=True):
    """Carry out the prepared execution, now. The one request that presses keys; it is sent once, whatever happens."""

    waits: ClassVar[bool] = False
    boot_id: str
    execution_id: str
    digest: str
    action_class: ActionClass

    def scope(self) -> Scope:
        """See OutwardRequest: just these bytes."""
        return commit_scope(self.action_class, self.execution_id, self.digest)


def commit_scope(action_class: ActionClass, execution_id: str, digest: str) -> Scope:
    """The scope of the permit for one execution."""
    return Scope(action_class, f"hid:{execution_id}:{digest}")


@event_type("hid.ended")
class HidEnded(DeviceAnswer, frozen=True, kw_only=True):
    """The device says how the execution ended: DONE, or ABORTED after ``done`` of ``of`` reports, with its ``code``."""

    execution_id: Word
    state: Literal["DONE", "ABORTED"]
    done: int
    of: int
    code: Word = ""


@event_type(
    "hid.status_requested", effect=Effect(repeatable=True, limit_s=30.0, concurrency=4, outcomes=("hid.told", *_UNDONE))
)
class HidStatusRequested(Payload, frozen=True, kw_only=True):
    """At ``at`` (log time), ask what the device knows of an execution."""

    boot_id: str
    execution_id: str
    at: str


@event_type("hid.told")
class HidTold(DeviceAnswer, frozen=True, kw_only=True):
    """The knowledge that the device with this boot has of it."""

    execution_id: Word
    state: ExecutionState
    digest: Word
    done: int
    of: int
    code: Word = ""


@event_type("hid.refused")
class HidRefused(DeviceAnswer, frozen=True, kw_only=True):
    """The device refused what was asked, and did nothing of it. ``code`` is the device's (docs/hid-protocol.md), or
    no_text: the plain text is not in memory any more."""

    code: Word
    text: Sentence


@event_type("hid.silent")
class HidSilent(DeviceAnswer, frozen=True, kw_only=True):
    """There was no answer, or no device to ask. ``sent``: whether the request may have reached it."""

    code: Word
    text: Sentence
    sent: bool


# --- what the link decides ----------------------------------------------------------------------------------------


@event_type("hid.tripped")
class HidTripped(Payload, frozen=True, kw_only=True):
    """The link is not to be trusted with keys any more: the mode falls to OBSERVE; ``code`` as in
    ``pla.mode_changed``."""

    session_id: str
    boot_id: str
    code: str
    text: str


@event_type("hid.outcome_unknown")
class HidOutcomeUnknown(Payload, frozen=True, kw_only=True):
    """Nobody can tell how much of an execution was typed: between 0 and ``of`` reports (0: not known either). It is
    never typed again; the operator looks at the screen."""

    session_id: str
    proposal_id: str
    execution_id: str
    action_type: ActionType
    of: int
    why: str
