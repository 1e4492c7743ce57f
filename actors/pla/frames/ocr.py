"""The text of a picture, read by the program tesseract where the machine has it (docs/design.md §16.10); blocking."""

from __future__ import annotations

import functools
import os
import re
import threading
from typing import Final, NamedTuple

from pmagent.actors.pla.frames.program import found, run
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED
from pmagent.events.unseen import UNSEEN

SECONDS: Final = 25.0
TEXT_BYTES_MAX: Final = 256 * 1024
TEXT_CHARS_MAX: Final = 40_000
"""So much is looked at for credentials; a fact holds less."""

MISSING: Final = "tesseract is not installed, and nothing was read: apt install tesseract-ocr"

_VERSION_SECONDS: Final = 15.0
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
_BLANKS: Final = re.compile("[ \t]+")
_EMPTY_LINES: Final = re.compile("\n(?:[ \t]*\n)+")
_VERSION: Final = re.compile(rb"tesseract v?([0-9][0-9A-Za-z.-]{0,40})")

_SAID: Final = {
    "timed_out": f"tesseract took longer than {SECONDS:g} s",
    "memory": "tesseract wanted too much memory",
    "output": "tesseract gave too much text",
    "crashed": "tesseract could not read the picture",
    "stopped": "reading was stopped",
}


class Reading(NamedTuple):
    """The picture's text, the program and version that read it ("": none), and notes."""

    text: str
    program: str
    notes: list[str]


def read(content: bytes, stop: threading.Event | None = None) -> Reading:
    """The text on the picture ``content``. That nothing could be read is a note, and no error: there is a frame all the
    same. Raises OSError where no process can be started."""
    program = found("tesseract")
    if not program:
        return Reading("", "", [MISSING])
    ended = run((program, "stdin", "stdout"), content, seconds=SECONDS, output_bytes=TEXT_BYTES_MAX, stop=stop)
    notes = [] if ended.sandboxed else [UNSANDBOXED]
    if ended.ended != "done":
        return Reading("", "", [_SAID[ended.ended], *notes])
    return Reading(plain(ended.output), _named(program, os.stat(program).st_mtime_ns), notes)


def plain(output: bytes) -> str:
    """Text as it may stand in a fact: without characters that are not seen or change how others are seen, blanks and
    line ends one each."""
    text = output.decode("utf-8", "replace").replace("\r\n", "\n").replace("\f", "\n")
    text = _BLANKS.sub(" ", _UNSEEN.sub("", text))
    return _EMPTY_LINES.sub("\n", text).strip("\n ")[:TEXT_CHARS_MAX]


@functools.lru_cache(maxsize=4)
def _named(program: str, _changed: int) -> str:
    """The program with its version, if it says one."""
    ended = run((program, "--version"), seconds=_VERSION_SECONDS, output_bytes=TEXT_BYTES_MAX)
    version = _VERSION.search(ended.output) or _VERSION.search(ended.stderr_tail)
    return f"tesseract {version[1].decode()}" if version else "tesseract"
