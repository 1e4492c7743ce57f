"""The PLA's settings in a workspace: ``[pla]`` of whoever holds the log (docs/design.md §16.5).

A daemon goes by its own environment and the workspace's file, whatever the environment of who asks it says: so nobody
who can only talk to it loosens the policy on credentials, the two persons, or how long a proposal stands open.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from pmagent.contracts.pla_events import FrameSource
from pmagent.events.errors import PmagentError
from pmagent.workspace.settings import FILE, PlaSettings
from pmagent.workspace.trust import resolved


class BadFrames(PmagentError, exit_code=2):
    """It is not said where frames come from, or it is no path."""


def standing(workspace: Path) -> PlaSettings:
    """The settings that hold now, of a file that is accepted. Blocking. Raises ConfigError, NotAccepted."""
    return resolved(workspace, os.environ).settings.pla


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
