"""Takes a frame and reads what stands on it: the performer of ``pla.frame_requested`` (docs/design.md §16.10)."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.pla.credentials.findings import masked_screen
from pmagent.actors.pla.frames import camera, folder, ocr
from pmagent.actors.pla.frames.folder import Taken
from pmagent.actors.pla.frames.problem import NoFrame
from pmagent.actors.sandbox.reader.stopping import stoppable
from pmagent.contracts.pla import OCR_CHARS_MAX
from pmagent.contracts.pla_events import FrameSource, PlaFrameFailed, PlaFrameObserved, PlaFrameRequested
from pmagent.events.event import Event

_NOTE_CHARS_MAX: Final = 2000
_ALTERED: Final = "the picture's bytes look as if they held a secret, and it is not kept"


class Frame(NamedTuple):
    """A picture, and the text on it as it may be recorded."""

    taken: Taken
    text: str
    program: str
    notes: list[str]


async def take(event: Event, io: Io) -> PlaFrameObserved | PlaFrameFailed:
    """Performer of pla.frame_requested: the picture is in the blob store before the fact that names it."""
    asked: PlaFrameRequested = event.data
    outcome = await _in_thread(lambda stop: frame(asked.source, io.masked, stop))
    if isinstance(outcome, NoFrame):
        return PlaFrameFailed(
            request=event.position, code=outcome.code, text=outcome.message[:_NOTE_CHARS_MAX],
            mend=outcome.hint[:_NOTE_CHARS_MAX],
        )  # fmt: skip
    content, found, notes = outcome.taken.content, outcome.taken.picture, outcome.notes
    digest = sha256(content).hexdigest()
    kept = asked.source.keep
    if kept and await io.store_blob(content) != digest:
        kept, notes = False, [*notes, _ALTERED]
    return PlaFrameObserved(
        request=event.position, name=outcome.taken.name[:4096], media_type=found.media_type, sha256=digest,
        size=len(content), width=found.width, height=found.height, ocr_text=outcome.text, ocr=outcome.program,
        note="; ".join(notes)[:_NOTE_CHARS_MAX], kept=kept,
    )  # fmt: skip


FRAME_PERFORMERS: Final[Performers] = {PlaFrameRequested: take}


def frame(source: FrameSource, masked: Callable[[str], str], stop: threading.Event) -> Frame:
    """The newest frame of ``source``; blocking. Raises NoFrame."""
    try:
        taken = _from(source.path, stop)
    except OSError as error:
        raise _unreachable(source.path, error) from error
    try:
        reading = ocr.read(taken.content, stop)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        reading = ocr.Reading("", "", [f"tesseract could not be started ({name})"])
    notes = [*taken.notes, *reading.notes]
    shown = masked_screen(reading.text, masked)
    if shown != reading.text:
        notes.append("what looks like a credential is masked in the text")
    if len(shown) > OCR_CHARS_MAX:
        notes.append(f"the text is cut to {OCR_CHARS_MAX} characters")
    return Frame(taken, shown[:OCR_CHARS_MAX], reading.program, list(dict.fromkeys(notes)))


def _from(path: str, stop: threading.Event) -> Taken:
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        return folder.newest(path)
    if camera.is_camera(found):
        return camera.taken(path, stop)
    raise NoFrame(
        "no_source", f"{path} is neither a folder nor a video device", "name one with --frames, or in [pla] frames"
    )


def _unreachable(path: str, error: OSError) -> NoFrame:
    name = errno.errorcode.get(error.errno or 0, "unknown")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NoFrame("no_source", f"there is no {path}", "make the folder, or name another with --frames")
    return NoFrame("no_source", f"{path} cannot be read ({name})", "look at its permissions")


async def _in_thread(work: Callable[[threading.Event], Frame]) -> Frame | NoFrame:
    """The work, done in a thread; who stops waiting stops it, and waits until its processes are gone."""

    def guarded(stop: threading.Event) -> Frame | NoFrame:
        try:
            return work(stop)
        except NoFrame as problem:
            return problem

    return await stoppable(guarded)
