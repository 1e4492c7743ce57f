"""A picture from a video device (V4L2), taken by ffmpeg or fswebcam (docs/design.md §16.10); blocking."""

from __future__ import annotations

import os
import stat
import threading
from typing import Final

from pmagent.actors.pla.frames.folder import BYTES_MAX, Taken
from pmagent.actors.pla.frames.pictures import NotAPicture, TooLarge, picture
from pmagent.actors.pla.frames.problem import NoFrame
from pmagent.actors.pla.frames.program import found, run
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED

SECONDS: Final = 20.0
MAJOR: Final = 81
"""The major number of video devices (Linux, devices.txt)."""

_COMMANDS: Final = {
    "ffmpeg": (
        "-nostdin", "-hide_banner", "-loglevel", "error", "-f", "v4l2", "-i", "{}", "-frames:v", "1", "-c:v", "png",
        "-f", "image2pipe", "pipe:1",
    ),
    "fswebcam": ("-q", "--no-banner", "-S", "5", "-d", "{}", "--png", "6", "-"),
}  # fmt: skip
"""Program -> its arguments; {} is the device."""


def is_camera(status: os.stat_result) -> bool:
    """Whether this is a video device."""
    return stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) == MAJOR


def taken(path: str, stop: threading.Event | None = None) -> Taken:
    """A picture from the device at ``path``, as it is now. Raises NoFrame; OSError where no process can be started."""
    device = os.path.realpath(path)
    program = next((name for name in _COMMANDS if found(name)), "")
    if not program:
        text = f"neither {' nor '.join(_COMMANDS)} is installed, and nothing else here takes a picture from {path}"
        raise NoFrame("no_program", text, "apt install ffmpeg")
    command = (found(program), *(word.format(device) for word in _COMMANDS[program]))
    ended = run(command, seconds=SECONDS, output_bytes=BYTES_MAX, stop=stop, devices=(device,))
    match ended.ended:
        case "done":
            pass
        case "timed_out":
            raise NoFrame("timed_out", f"{program} took no picture from {path} in {SECONDS:g} s", "is it in use?")
        case "output":
            raise NoFrame("too_large", f"{program} gave more than {BYTES_MAX} bytes", "choose a smaller picture")
        case _:
            what = f"{program} took no picture from {path} ({ended.ended})"
            raise NoFrame("no_frame", what, f"try it: {' '.join(command)} > frame.png")
    try:
        return Taken(path, ended.output, picture(ended.output), [] if ended.sandboxed else [UNSANDBOXED])
    except NotAPicture as error:
        raise NoFrame("not_a_picture", f"what {program} gave is no picture: {error.text}", "try it by hand") from error
    except TooLarge as error:
        raise NoFrame("too_large", error.text, "choose a smaller picture") from error
