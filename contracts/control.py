"""The stop switch: an operator pauses new outward effects, and lets them go on (docs/design.md §6).

While effects are paused the gate judges requests as ever, and the engine holds what it would have let start; what must
not wait (``OutwardRequest.waits``) is refused. Running effects go on, except typing, which ends.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pmagent.contracts.payload import END, Payload, event_type

OperatorId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+" + END, min_length=2, max_length=64)]
Channel = Literal["cli", "console", "api", "document", "daemon"]
"""Over which way somebody acted."""
Severity = Literal["urgent", "bad", "warn"]
"""Of an alert. ``urgent``: nobody knows what happened, or nothing works any more."""

REASON_CHARS_MAX = 500
FOLDER_CHARS_MAX = 8192

Why = Annotated[str, Meta(max_length=REASON_CHARS_MAX)]


class OperatorAct(Payload, frozen=True, kw_only=True):
    """An operator uses the stop switch, or adopts a log."""

    operator_id: OperatorId
    channel: Channel


@event_type("control.pause_requested", request=True)
class PauseRequested(OperatorAct, frozen=True, kw_only=True):
    """An operator wants no new outward effect to start."""

    reason: Why = ""


@event_type("control.paused")
class EffectsPaused(Payload, frozen=True, kw_only=True):
    """The gate: effects are paused. ``since`` is the position of the request that paused them: ``request`` itself, or
    an earlier one, which then still stands."""

    request: int
    since: int
    operator_id: str
    channel: Channel
    reason: str


@event_type("control.resume_requested", request=True)
class ResumeRequested(OperatorAct, frozen=True, kw_only=True):
    """An operator lets effects start again."""

    reason: Why = ""


@event_type("control.resumed")
class EffectsResumed(Payload, frozen=True, kw_only=True):
    """The gate: effects start again, those first that were held, in their order; ``held``: how many. ``since``: the
    position of the request that had paused them, 0 when they were not paused."""

    request: int
    since: int
    held: int
    operator_id: str
    channel: Channel


@event_type("control.log_adopted")
class LogAdopted(OperatorAct, frozen=True, kw_only=True):
    """An operator took a log for this machine's own that was not known as such: all that was open in it is ended, and
    nothing of it goes on. ``folder`` is where it lies, ``uid`` the owner of its files, ``previous`` the folder in which
    it was known before ("": in none). ``gone_from`` to ``gone_to`` are the events that were known here and are gone (0:
    none are), ``known_sum`` is the sum that was known at ``gone_to``."""

    uid: Annotated[int, Meta(ge=0)]
    folder: Annotated[str, Meta(max_length=FOLDER_CHARS_MAX)]
    previous: Annotated[str, Meta(max_length=FOLDER_CHARS_MAX)] = ""
    gone_from: Annotated[int, Meta(ge=0)] = 0
    gone_to: Annotated[int, Meta(ge=0)] = 0
    known_sum: Annotated[str, Meta(max_length=64)] = ""


JobId = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}" + END)]
PRUNED_PATHS_MAX = 8


class PrunedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose documents are given up. ``paths``: where they lie in the workspace; the last part of each contains
    the job's id, and all below it goes."""

    job_id: JobId
    paths: Annotated[list[Annotated[str, Meta(max_length=1024)]], Meta(max_length=PRUNED_PATHS_MAX)]


@event_type("control.pruned")
class Pruned(OperatorAct, frozen=True, kw_only=True):
    """An operator gives up the documents and the content of jobs that have ended. Their events stay.

    ``blobs``: SHA-256 of the content that only events of these jobs name, up to position ``until``; where a later event
    names one of them again, it is needed. ``older_than_sec`` and ``keep`` are the policy: ended so long before, and not
    among so many that are newest."""

    jobs: Annotated[list[PrunedJob], Meta(min_length=1)]
    blobs: list[Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]]
    until: Annotated[int, Meta(ge=0)]
    older_than_sec: Annotated[float, Meta(ge=0)]
    keep: Annotated[int, Meta(ge=0)]


@event_type("control.prune_ended")
class PruneEnded(Payload, frozen=True, kw_only=True):
    """The blobs that were given up at position ``pruned`` are removed: so many now, of so many bytes together. After a
    crash in between, fewer."""

    pruned: int
    blobs: Annotated[int, Meta(ge=0)]
    bytes: Annotated[int, Meta(ge=0)]


class Noted(Payload, frozen=True, kw_only=True):
    """Base of what is noted about who came to the console."""

    operator_id: Annotated[str, Meta(max_length=64)]
    by: Annotated[str, Meta(max_length=32)] = ""


@event_type("console.signed_in")
class SignedIn(Noted, frozen=True, kw_only=True):
    """Somebody signed in to the console; ``by``: link (a one-time address), secret, or passkey."""


@event_type("console.passkey_added")
class PasskeyAdded(Noted, frozen=True, kw_only=True):
    """An operator who was signed in adds a passkey, by which they may sign in from now on; ``by``: its name for people,
    ``reason``: the beginning of its id."""

    reason: Why = ""


@event_type("console.signed_out")
class SignedOut(Noted, frozen=True, kw_only=True):
    """They signed out."""


@event_type("console.refused")
class SignInRefused(Noted, frozen=True, kw_only=True):
    """Somebody was not let in; ``operator_id`` is the name that was given, if it is one that an operator can have."""

    reason: Why = ""


@event_type("console.checked")
class Checked(Payload, frozen=True, kw_only=True):
    """A check that an operator asked for on the console has come to an answer. ``what`` was checked: the log, the
    documents against it, or, by making each decision again, what today's actors decide; ``exit_code`` is that of the
    command that does the same. Of the log, ``position`` and ``sum`` are those of the last event that was found
    intact."""

    operator_id: OperatorId
    what: Literal["log", "documents", "replay"]
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    position: Annotated[int, Meta(ge=0)] = 0
    sum: Annotated[str, Meta(max_length=64)] = ""
