"""The one writer: everything that a command says leaves here (docs/design.md §11.3).

``line`` and ``block`` are for people and pass ``clean``; ``document`` and ``raw`` are for programs and are
byte-faithful, except that a terminal gets escapes for all that it would obey; ``note`` is for what goes on meanwhile,
on stderr. Styles never carry meaning alone.
"""

from __future__ import annotations

import io
import os
import select
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TextIO

import msgspec

from pmagent.clean import clean_block, clean_line, escaped_json, json_bytes
from pmagent.events.errors import FULL, PmagentError
from pmagent.when import SHORT, local, short

if TYPE_CHECKING:
    from pmagent.service.answer import Answer

_CODES: Final = {
    "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "dim": "2", "bold": "1",
}
NOTE_BYTES_MAX: Final = select.PIPE_BUF
"""A line up to here is taken whole by a pipe that takes anything."""
PIPED_COLUMNS: Final = 160
"""How wide a line for people is where there is no terminal that tells."""


class PipeClosed(Exception):
    """The reader of our output has gone away."""


class Unwritten(PmagentError, exit_code=70):
    """Our output cannot be written: a full disk, say. The request may have been carried out all the same."""

    def __init__(self, error: OSError) -> None:
        what = f"the output could not be written: {error.strerror or type(error).__name__}"
        if error.errno in FULL:
            self.exit_code = 9
        super().__init__(what, "what was asked for may have been done all the same: pmagent log tail")


class Styled(NamedTuple):
    """Text with a style, a key of the colour table. Without colour it is the text alone."""

    text: str
    style: str


Piece = str | Styled


class Sink(Protocol):
    """The part of a binary stream that is used."""

    def write(self, data: bytes, /) -> Any:
        """Take bytes."""

    def flush(self) -> Any:
        """Hand them on."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""

    def fileno(self) -> int:
        """Its descriptor."""


class _Nowhere:
    """A stream that takes everything and keeps nothing."""

    def write(self, data: bytes, /) -> int:
        """Take it."""
        return len(data)

    def flush(self) -> None:
        """Nothing to hand on."""

    def isatty(self) -> bool:
        """No."""
        return False

    def fileno(self) -> int:
        """There is none. Raises ValueError."""
        raise ValueError("no descriptor")


class _Paged:
    """A pager's standard input: what it shows is seen on a terminal."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.write, self.flush, self.fileno = stream.write, stream.flush, stream.fileno

    def isatty(self) -> bool:
        """Yes, in the end."""
        return True


class Output:
    """Writes to ``stdout`` and ``stderr`` (binary). ``environ`` decides about colour and width."""

    def __init__(
        self, stdout: Sink, stderr: Sink, environ: Mapping[str, str], encodings: tuple[str, str] = ("utf-8", "utf-8")
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._encodings = encodings
        self._environ = environ
        self.color = _wants_color(environ, stdout)
        self._stderr_color = _wants_color(environ, stderr)
        self.wrote = False
        self.utc = False

    @classmethod
    def standard(cls) -> Output:
        """The writer over this process's own streams."""
        (out, written), (err, noted) = _standard(sys.stdout, 1), _standard(sys.stderr, 2)
        return cls(out, err, os.environ, (written, noted))

    @property
    def columns(self) -> int:
        """How wide a line for people may be."""
        if self._environ.get("COLUMNS", "").isdigit():
            return max(40, int(self._environ["COLUMNS"]))
        return max(40, shutil.get_terminal_size().columns) if _is_terminal(self._stdout) else PIPED_COLUMNS

    @property
    def is_local(self) -> bool:
        """Whether times are shown in this machine's zone: on a terminal, unless --utc was given."""
        return self.is_seen and not self.utc

    @property
    def now(self) -> datetime:
        """The time, in the zone in which times are shown, and are meant."""
        return datetime.now().astimezone() if self.is_local else datetime.now(UTC)

    @property
    def zone(self) -> str:
        """The name of that zone, for a terminal. A pipe gets times with their Z."""
        return (self.now.tzname() or "") if self.is_seen else ""

    @property
    def time_width(self) -> int:
        """How wide ``time`` is at most."""
        return SHORT if self.is_seen else 24

    def time(self, time: str, *, brief: bool = False) -> str:
        """A log time for a column: short on a terminal, else as RFC 3339 to the millisecond; ``brief``: to the second,
        or the minute, in 17 characters."""
        if self.is_seen:
            return short(local(time)[0] if self.is_local else time)[: 16 if brief else SHORT].rstrip()
        return f"{time[: 16 if brief else 23]}Z" if len(time) == 27 else time[:17]

    def moment(self, time: str) -> str:
        """A log time with its zone."""
        zone = (local(time)[1] if self.is_local else "UTC") if self.is_seen else ""
        return f"{self.time(time)} {zone}".rstrip()

    def shows(self, text: str) -> bool:
        """Whether stdout's encoding has each character of ``text``; what it has not, people see as ``?``."""
        try:
            text.encode(self._encodings[0])
        except UnicodeEncodeError:
            return False
        return True

    def set_color(self, when: str) -> None:
        """``always``, ``never``, or ``auto``: as the environment and the stream say."""
        if when != "auto":
            self.color = self._stderr_color = when == "always"

    def line(self, *pieces: Piece) -> None:
        """One line for people, on stdout; a line break within it is shown, not made."""
        self._write(_line(pieces, self.color, self._encodings[0]))

    def block(self, text: str) -> None:
        """Several lines for people, on stdout."""
        self._write((clean_block(text.rstrip("\n")) + "\n").encode(self._encodings[0], "replace"))

    def difference(self, lines: Sequence[str]) -> None:
        """A heading, and a unified diff below it; the first character says what colour repeats."""
        self.line("")
        self.line(Styled(lines[0], "bold"))
        for line in lines[1:]:
            self.line("  ", Styled(line, {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")))

    def note(self, *pieces: Piece) -> None:
        """One line on stderr: progress, warnings, errors; behind what was written to stdout before, also where both go
        to one pipe. Never raises: there is nowhere left to say so."""
        with suppress(OSError, ValueError):  # whoever writes to stdout next is told
            self._stdout.flush()
        try:
            self._stderr.write(_line(pieces, self._stderr_color, self._encodings[1]))
            self._stderr.flush()
        except OSError:
            self._stderr = _Nowhere()

    @property
    def is_seen(self) -> bool:
        """Whether what is written goes to a terminal, where somebody may read it."""
        return _is_terminal(self._stdout)

    @property
    def notes_seen(self) -> bool:
        """Whether notes go to a terminal, where a question can be read."""
        return _is_terminal(self._stderr)

    def try_note(self, *pieces: Piece) -> bool:
        """``note`` for who must not wait: whether it was written. It is not when nobody reads what stands there already
        (a full pipe, a terminal that was stopped with Ctrl-S). A long line is cut."""
        line = _line(pieces, self._stderr_color, self._encodings[1])
        if len(line) > NOTE_BYTES_MAX:
            end = "\u2026\x1b[0m\n" if self._stderr_color else "\u2026\n"
            kept = line[: NOTE_BYTES_MAX - 16].decode(self._encodings[1], "ignore")
            line = (kept + end).encode(self._encodings[1], "replace")
        try:
            poll = select.poll()
            poll.register(self._stderr.fileno(), select.POLLOUT)
            if not poll.poll(0):
                return False
        except (OSError, ValueError):
            pass  # it has no descriptor, so it is no pipe and no terminal
        try:
            self._stderr.write(line)
            self._stderr.flush()
        except OSError:
            self._stderr = _Nowhere()
        return True

    def notes_screen(self) -> os.terminal_size | None:
        """How large the terminal is that notes go to; None where they go elsewhere, or to one that cannot move its
        cursor."""
        if not _is_terminal(self._stderr) or self._environ.get("TERM", "dumb") == "dumb":
            return None
        try:
            size = os.get_terminal_size(self._stderr.fileno())
        except (OSError, ValueError):
            return None
        return os.terminal_size((size.columns or 80, size.lines or 24))

    def panel(self, lines: Sequence[Sequence[Piece]], over: int) -> None:
        """Notes in place of the last ``over`` lines of a terminal, in one write. None may be wider than it."""
        drawn = [_line(pieces, self._stderr_color, self._encodings[1])[:-1] + b"\x1b[K\n" for pieces in lines]
        try:
            self._stderr.write(b"".join([b"\x1b[%dA" % over if over else b"", b"\r", *drawn, b"\x1b[J"]))
            self._stderr.flush()
        except OSError:
            self._stderr = _Nowhere()

    def document(self, document: Any) -> None:
        """One JSON document, on stdout."""
        self.raw(msgspec.json.format(json_bytes(document), indent=2) + b"\n")

    def answer(self, format: str, document: Any, screen: Callable[[], None]) -> None:
        """An answer in ``--format``: the ``document`` for programs, ``screen`` for people."""
        self.document(document) if format == "json" else screen()

    def raw(self, data: bytes) -> None:
        """Bytes as they are, on stdout: JSON for programs. To a terminal, the same JSON with everything escaped that
        ``clean`` would replace."""
        self._write(escaped_json(data) if self.is_seen else data)

    @contextmanager
    def paged(self, *, wanted: bool = True) -> Iterator[None]:
        """To a terminal, show the output of the block by a pager, as git does: ``PAGER``, else less; none where that
        is empty or ``cat``, or is not installed. A reader who leaves it early ends the block."""
        import shlex
        import signal
        import subprocess

        try:
            command = shlex.split(self._environ.get("PAGER", "less"))
        except ValueError:  # a quote that nobody closes
            command = []
        dumb = self._environ.get("TERM", "dumb") == "dumb"
        if not wanted or dumb or not self.is_seen or command[:1] in ([], ["cat"]) or not shutil.which(command[0]):
            yield
            return
        self.flush()
        direct, environment = self._stdout, {"LESS": "FRX", "LV": "-c", **self._environ}
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as pager:
            assert pager.stdin is not None
            self._stdout = _Paged(pager.stdin)
            try:
                yield
                self.flush()
            except PipeClosed:
                pass
            finally:
                self._stdout = direct
                before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's while it shows
                with suppress(BrokenPipeError):
                    pager.stdin.close()
                pager.wait()
                signal.signal(signal.SIGINT, before)

    def flush(self) -> None:
        """Hand over what was written. Raises PipeClosed, Unwritten."""
        try:
            self._stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        except OSError as error:
            raise Unwritten(error) from error

    def reader_gone(self) -> bool:
        """Whether nobody reads stdout any more; so that a command that waits for events need not wait for the next."""
        try:
            poll = select.poll()
            poll.register(self._stdout.fileno(), 0)
            return any(mask & select.POLLERR for _, mask in poll.poll(0))
        except (OSError, ValueError):
            return False

    def abandon(self) -> None:
        """Stop writing to a stdout that nobody reads; what is left in buffers goes nowhere, silently."""
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stdout.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            self._stdout = _Nowhere()

    def _write(self, data: bytes) -> None:
        self.wrote = True
        try:
            self._stdout.write(data)
        except BrokenPipeError:
            raise PipeClosed from None
        except OSError as error:
            raise Unwritten(error) from error


def write_file(path: Path, chunks: Iterable[bytes]) -> int:
    """Write ``chunks`` to ``path`` and return the number of bytes; the file appears, or is replaced, at the end.

    An error while chunks are read leaves what came before it in the file, and is raised again. Raises OSError.
    """
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    size = 0
    with temporary.open("xb") as file:
        try:
            for chunk in chunks:
                size += file.write(chunk)
        finally:
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    return size


def _line(pieces: Iterable[Piece], color: bool, encoding: str) -> bytes:
    parts = []
    for piece in pieces:
        if isinstance(piece, Styled):
            code = _CODES.get(piece.style) if color else None
            text = clean_line(piece.text)
            parts.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
        else:
            parts.append(clean_line(piece))
    return ("".join(parts).rstrip(" ") + "\n").encode(encoding, "replace")


def _standard(stream: TextIO | None, descriptor: int) -> tuple[Sink, str]:
    """A standard stream, and its encoding. One that was closed before we started shows nothing; no file of ours may get
    its number, for libraries and children write there."""
    if stream is not None:
        return stream.buffer, stream.encoding or "utf-8"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    return io.FileIO(descriptor, "wb", closefd=False), "utf-8"


def _is_terminal(stream: Sink) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def _wants_color(environ: Mapping[str, str], stream: Sink) -> bool:
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return _is_terminal(stream) and environ.get("TERM") != "dumb"


def warned(output: Output, answer: Answer) -> Answer:
    """The answer, when all that it warns of has been said."""
    for warning in answer.warnings:
        output.note(Styled("warning:", "yellow"), f" {warning}")
    return answer
