"""The PLA's settings in a workspace: ``[pla]`` of whoever holds the log (docs/design.md §16.5).

A daemon goes by its own environment and the workspace's file, whatever the environment of who asks it says: so nobody
who can only talk to it loosens the policy on credentials, the two persons, or how long a proposal stands open.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from pmagent.contracts.model import ModelLimits
from pmagent.contracts.pla import CredentialPolicy
from pmagent.contracts.pla_events import FrameSource
from pmagent.events.errors import PmagentError
from pmagent.workspace.settings import FILE
from pmagent.workspace.trust import resolved


class BadFrames(PmagentError, exit_code=2):
    """It is not said where frames come from, or it is no path."""


class PlaSettings(msgspec.Struct, frozen=True):
    """The settings, as requests need them. ``frames``: the path as it is set, "": none is; ``layout`` and ``machine``:
    those declared of the machine that is typed on, "": none is."""

    policy: CredentialPolicy
    lifetime_s: float
    two_persons: bool
    frames: str
    keep_frames: bool
    model: str
    limits: ModelLimits
    layout: str = ""
    machine: str = ""


def standing(workspace: Path) -> PlaSettings:
    """The settings that hold now, of a file that is accepted. Blocking. Raises ConfigError, NotAccepted."""
    settings = resolved(workspace, os.environ).settings.pla
    limits = ModelLimits(
        attempts=settings.attempts, call_seconds=settings.call_seconds, calls=settings.calls, seconds=settings.seconds,
        tokens=settings.tokens,
    )  # fmt: skip
    return PlaSettings(
        policy=settings.credentials, lifetime_s=settings.proposal_seconds, two_persons=settings.two_persons,
        frames=settings.frames, keep_frames=settings.keep_frames, model=settings.model, limits=limits,
        layout=settings.layout, machine=settings.name,
    )  # fmt: skip


def frame_source(given: str, settings: PlaSettings, workspace: Path) -> FrameSource:
    """Where frames come from: the path ``given``, else that of the settings; a relative one is the workspace's. Raises
    BadFrames."""
    path = given or settings.frames
    if not path:
        raise BadFrames("it is not said where frames come from", f"--frames PATH, or frames under [pla] in {FILE}")
    if "\0" in path:
        raise BadFrames("the path of the frames is no path", "give a folder of pictures, or a video device")
    whole = os.path.abspath(workspace / path)
    try:
        return msgspec.convert({"path": whole, "keep": settings.keep_frames}, FrameSource)
    except msgspec.ValidationError as error:
        raise BadFrames(f"the path of the frames cannot be recorded: {error}", "give a shorter one") from error
