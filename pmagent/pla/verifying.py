"""Session logs checked: by themselves, and against the log that they were computed from (docs/design.md §16.8).

By itself a file shows each byte that was changed, and each line that was removed, put in or moved. It cannot show
that its end was cut off, or that all of it was made anew with other checksums: that takes the log, or the checksum
that somebody wrote down.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgspec

from pmagent.contracts.checking import check
from pmagent.contracts.content import Growing
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import log_of
from pmagent.projections.core.documents import Documents, computed, folded
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.projections.runs.paths import SESSIONS
from pmagent.projections.sessions.chain import GENESIS, canonical, checksum
from pmagent.projections.sessions.sessions import Sessions

LINE_BYTES_MAX: Final = 64 * 1024
"""No entry is longer."""

Code = Literal[
    "", "missing", "unreadable", "empty", "cut", "too_long", "not_json", "not_canonical", "contract", "chain",
    "checksum", "log",
]


class SessionLogUnreadable(PmagentError):
    """There is no such session log, or it cannot be read."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a session log. ``entries``: so many are good, from the first one on, and ``checksum`` is the
    last of theirs; ``line`` is the first bad one (0: none), ``code`` and ``reason`` say what is wrong, ``mend`` what to
    do. ``compared``: with the log, which has ``missing`` entries more."""

    ok: bool
    entries: int
    checksum: str
    line: int = 0
    code: Code = ""
    reason: str = ""
    mend: str = ""
    compared: bool = False
    missing: int = 0


class _Bad(Exception):
    """A line is not what it must be."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def verify_session_log(path: Path, expected: Iterator[bytes] | None = None, size: int | None = None) -> Verdict:
    """``verify_stream`` for the session log, or the violations, at ``path``. Raises SessionLogUnreadable."""
    try:
        with path.open("rb") as file:
            return verify_stream(file, expected, size)
    except OSError as error:
        raise _unreadable(path, error) from error


def verify_stream(file: BinaryIO, expected: Iterator[bytes] | None = None, size: int | None = None) -> Verdict:
    """Go through a session log; its first ``size`` bytes, where that is given.

    ``expected``: what the log says that it must be, in pieces; without it, what was cut off at the end cannot be seen.
    The time is linear in the file's length, the memory bounded. Raises OSError.
    """
    law = _Law(expected) if expected is not None else None
    good, tail = 0, GENESIS
    try:
        for line in _lines(file, size):
            tail = _follows(line, tail)
            if law is not None:
                law.hold(line)
            good += 1
        if not good:
            raise _Bad("empty", "there is no entry; a session log begins with how the session began")
        missing = law.left() if law is not None else 0
    except _Bad as bad:
        return _verdict(bad, good, tail, compared=law is not None)
    if missing:
        cut = _Bad("cut", f"the log has {missing} entries more: the end was cut off, or is not written yet")
        return _verdict(cut, good, tail, compared=True, missing=missing)
    return Verdict(ok=True, entries=good, checksum=tail, compared=law is not None)


def _verdict(bad: _Bad, good: int, tail: str, *, compared: bool, missing: int = 0) -> Verdict:
    again = "ask again in a moment if the session stands; else " if bad.code in ("cut", "missing") else ""
    mend = f"{again}keep the file for whoever looks into it; pmagent rebuild writes what the log says"
    return Verdict(
        ok=False, entries=good, checksum=tail, line=good + 1, code=bad.code, reason=bad.reason, mend=mend,
        compared=compared, missing=missing,
    )  # fmt: skip


def verify_with_log(workspace: Path, path: Path) -> Verdict:
    """``verify_session_log`` for a file of the workspace, against what the workspace's log says; the file as it was at
    the call, should more be written meanwhile. Raises SessionLogUnreadable, NotFound, CorruptLog."""
    size = _size(path)
    content = session_log(workspace, f"{SESSIONS}/{path.name}")
    return _unknown(path.name) if content is None else verify_session_log(path, content.pieces(), size)


def verify_workspace(workspace: Path) -> Iterator[tuple[Path, Verdict]]:
    """All session logs and violations that there are, or that the log says there must be, as ``verify_with_log`` would
    judge them; the log is gone through once. Raises NotFound, CorruptLog."""
    there = {path.name: _known_size(path) for path in _files(workspace)}
    for document, content in _session_logs(workspace):
        path = workspace / document
        size = there.pop(path.name, None)
        if isinstance(size, Verdict):
            yield path, size
        elif size is not None:
            yield path, _judged(path, content.pieces(), size)
        elif path.exists():  # it was not there when this began: more may stand in it by now than was read of the log
            yield path, _judged(path)
        else:
            bad = _Bad("missing", "the file was removed, or is not written yet")
            yield path, _verdict(bad, 0, GENESIS, compared=True)
    for name, size in there.items():
        yield workspace / SESSIONS / name, size if isinstance(size, Verdict) else _unknown(name)


def verify_alone(workspace: Path) -> Iterator[tuple[Path, Verdict]]:
    """All session logs and violations that there are, each by itself."""
    for path in _files(workspace):
        size = _known_size(path)
        yield path, size if isinstance(size, Verdict) else _judged(path)


def _files(workspace: Path) -> list[Path]:
    """Everything in the folder of session logs that has a name of theirs."""
    return sorted((workspace / SESSIONS).glob("*.jsonl"))


def _known_size(path: Path) -> int | Verdict:
    """The file's size; the verdict on what is no file that can be read: others are judged all the same."""
    try:
        return _size(path)
    except SessionLogUnreadable as error:
        return _unjudged(error)


def _judged(path: Path, expected: Iterator[bytes] | None = None, size: int | None = None) -> Verdict:
    """``verify_session_log``, for one of many."""
    try:
        return verify_session_log(path, expected, size)
    except SessionLogUnreadable as error:
        return _unjudged(error)


def _unjudged(error: SessionLogUnreadable) -> Verdict:
    return Verdict(ok=False, entries=0, checksum=GENESIS, code="unreadable", reason=error.message, mend=error.hint)


def _unknown(name: str) -> Verdict:
    return _verdict(_Bad("log", f"the log knows of no {SESSIONS}/{name}"), 0, GENESIS, compared=True)


def session_log(workspace: Path, document: str) -> Growing | None:
    """The content that ``sessions/<name>`` must have by the workspace's log; None: there is no such document. Raises
    NotFound, CorruptLog."""
    return next((content for found, content in _session_logs(workspace) if found == document), None)


def _session_logs(workspace: Path) -> Iterator[tuple[str, Growing]]:
    """All of them, each as soon as it is complete, from the log alone. Raises NotFound, CorruptLog."""
    store = log_of(workspace)
    with closing(store.reader()) as storage:
        documents = Documents([Sessions()])
        for parts in folded(storage, documents, store.blobs()):
            for document, content in computed(parts).items():
                if document.startswith(f"{SESSIONS}/") and isinstance(content, Growing):
                    yield document, content
        for halt in documents.halted.values():
            raise ProjectionHalted(halt)


# --- lines ---------------------------------------------------------------------------------------------------------


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
        raise SessionLogUnreadable(f"{path} is no regular file", "no session log is; take it away")
    return status.st_size


def _unreadable(path: Path, error: OSError) -> SessionLogUnreadable:
    why = error.strerror or type(error).__name__
    what = f"{path} cannot be read: {why}"
    return SessionLogUnreadable(what, "see that it is there and can be read; pmagent rebuild writes what the log says")


def _lines(file: BinaryIO, size: int | None) -> Iterator[bytes]:
    """The lines of the file's first ``size`` bytes, newlines included. Raises _Bad, OSError."""
    left = size
    while left is None or left > 0:
        line = file.readline(LINE_BYTES_MAX + 1 if left is None else min(LINE_BYTES_MAX + 1, left))
        if not line:
            return
        if left is not None:
            left -= len(line)
        if len(line) > LINE_BYTES_MAX:
            raise _Bad("too_long", f"the line has more than {LINE_BYTES_MAX} bytes")
        if not line.endswith(b"\n"):
            raise _Bad("cut", "the line does not end: it was cut off, or is being written")
        yield line


def _follows(line: bytes, tail: str) -> str:
    """The line's checksum, when it is a good one behind the one whose checksum is ``tail``. Raises _Bad."""
    entry = _entry(line)
    stated, before = entry["checksum"], entry["previous_log_checksum"]
    found = checksum(entry)
    if stated != found:
        raise _Bad("checksum", f"the entry's checksum is {found}, and it says {stated}")
    if before != tail:
        raise _Bad("chain", f"the entry follows {before}, and before it stands {tail}: a line is missing or moved")
    return found


def _entry(line: bytes) -> dict[str, Any]:
    raw = line[:-1]
    try:
        entry = json.loads(raw.decode("utf-8"))
        again = canonical(entry) if isinstance(entry, dict) else b""
    except (ValueError, RecursionError):  # the decoder's and the parser's errors are ValueErrors
        raise _Bad("not_json", "the line is no JSON") from None
    if not isinstance(entry, dict):
        raise _Bad("not_json", "the line is no JSON object")
    if again != raw:
        raise _Bad("not_canonical", "the line is not written as it must be: keys sorted, once each, no spaces")
    for problem in check("session_log", entry):
        raise _Bad("contract", f"no session_log: {problem.pointer or 'the entry'}: {problem.text}")
    return entry


class _Law:
    """The content that the log gives the file, gone through beside it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._at_hand = b""

    def hold(self, line: bytes) -> None:
        """The next line must be this one. Raises _Bad."""
        while len(self._at_hand) < len(line) and (piece := next(self._pieces, None)) is not None:
            self._at_hand += piece
        if not self._at_hand:
            raise _Bad("log", "the log has no such entry: this one was added")
        if not self._at_hand.startswith(line):
            raise _Bad("log", "the log says something else here: the file was made anew")
        self._at_hand = self._at_hand[len(line) :]

    def left(self) -> int:
        """How many entries there are beyond those."""
        count = self._at_hand.count(b"\n")
        for piece in self._pieces:
            count += piece.count(b"\n")
        return count
