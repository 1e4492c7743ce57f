"""A command's input: JSON from a file or from stdin, read within bounds and understood strictly; ids of jobs."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import termios
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import click

from pmagent.cli.output import Output, Styled
from pmagent.contracts.reasoning import ShapeError, check_bounds
from pmagent.events.errors import PmagentError

if TYPE_CHECKING:
    from pmagent.jobs.kinds import Source

INPUT_BYTES_MAX: Final = 4 * 1024 * 1024
"""No more is read; more than this is refused."""

STDIN: Final = "-"
_SHOWN_CHARS: Final = 60
_PATH_CHARS: Final = 200


class BadInput(PmagentError, exit_code=2):
    """A command's input cannot be read, or has another form; nothing was recorded."""


def stdin_waits() -> bool:
    """Whether somebody hands something over on stdin: it is there, and is no terminal."""
    try:
        return sys.stdin is not None and not sys.stdin.isatty()
    except ValueError:  # it was closed
        return False


def can_answer(output: Output) -> bool:
    """Whether somebody sees what is shown, and can type an answer."""
    try:
        return sys.stdin is not None and sys.stdin.isatty() and output.notes_seen
    except ValueError:  # it was closed
        return False


def confirmed(output: Output, question: str, flag: str) -> bool:
    """Ask; only ``yes`` is a yes. Input typed before the question answers nothing. Raises UsageError where nobody
    can answer: ``flag`` says yes there."""
    if not can_answer(output):
        raise click.UsageError(f"nobody can be asked here ({question}): give {flag}")
    output.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    output.note(Styled(question, "bold"), " type yes and Enter:")
    return sys.stdin.readline().strip() == "yes"


def from_here(workspace: Path, name: str) -> str:
    """The workspace's file ``name`` as a shell takes it in the current directory; from outside, its whole path."""
    try:
        here, top = Path.cwd(), workspace.resolve()
    except OSError:  # the current directory is gone
        return shlex.quote(str(workspace / name))
    return shlex.quote(os.path.relpath(top / name, here) if here.is_relative_to(top) else str(top / name))


def source_of(where: str) -> str:
    """The name of ``read_input``'s source in messages; of a long path the end."""
    if where == STDIN:
        return "stdin"
    return where if len(where) <= _PATH_CHARS else f"…{where[1 - _PATH_CHARS :]}"


def read_input(where: str, size: int = INPUT_BYTES_MAX, holds: str = "it has to hold one JSON object") -> bytes:
    """The bytes of the file ``where``, or of stdin for "-", at most ``size``; ``holds`` is the hint where there are
    none. Raises BadInput."""
    source = source_of(where)
    try:
        if where == STDIN:
            raw = _bounded(sys.stdin.buffer, size)
        else:
            with open(where, "rb") as file:
                raw = _bounded(file, size)
    except (OSError, ValueError, AttributeError) as error:  # ValueError: no path at all, or a closed stdin
        why = getattr(error, "strerror", None) or "it cannot be opened"
        raise BadInput(f"{source}: {why}", "give a file that can be read, or - for stdin") from error
    if len(raw) > size:
        raise BadInput(f"{source} is larger than {size} bytes", "give the part that matters")
    if not raw.strip():
        raise BadInput(f"{source} is empty", holds)
    return raw


def source_from(where: str | None, size: int, holds: str) -> Source | None:
    """A file for a job, named as it may stand in the log; None: none was given. Raises BadInput; see ``read_input``."""
    from pmagent.jobs.kinds import Source

    if where is None:
        return None
    return Source(source_of(where).encode("utf-8", "replace").decode(), read_input(where, size, holds))


def json_object(raw: bytes, source: str) -> dict[str, Any]:
    """The one JSON object that ``raw`` is; keys stand once, numbers are finite, text is text. Raises BadInput."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_distinct, parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise BadInput(f"{source} is not UTF-8 (byte {error.start})", "convert it first") from error
    except RecursionError:
        raise BadInput(f"{source} is nested too deeply", "no form and no report is") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInput(f"{source} is not JSON ({where}: {error.msg})", "it has to hold one JSON object") from error
    except ValueError as error:  # of the hooks below, or a number of thousands of digits
        why = str(error) if isinstance(error, _Unwanted) else "a number that is too long"
        raise BadInput(f"{source} is not JSON that can be taken: {why}", "correct it") from error
    if not isinstance(value, dict):
        raise BadInput(f"{source} holds no JSON object", "it has to hold one JSON object")
    try:
        check_bounds(source, value, INPUT_BYTES_MAX)
    except ShapeError as error:
        raise BadInput(str(error), "give the part that matters, as JSON that can be encoded again") from error
    return value


def id_prefix(given: str, name: str) -> str:
    """The beginning of a job's id, as the argument ``name`` gave it. Raises BadParameter."""
    if not given or not set(given.lower()) <= _ID_CHARS or len(given) > _ID_LENGTH:
        raise click.BadParameter("an id, or its beginning: digits, a to f, and -", param_hint=name)
    return given


def job_id(request: str | None) -> str:
    """The id of a job to ask for: a new one, or that of ``--request``. Raises BadParameter."""
    if request is None:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(request))
    except ValueError:
        raise click.BadParameter("the id of a run or an audit, all of it", param_hint="--request") from None


_ID_CHARS: Final = frozenset("0123456789abcdef-")
_ID_LENGTH: Final = 36


class _Unwanted(ValueError):
    """JSON that readers would understand differently."""


def _bounded(stream: BinaryIO, size: int) -> bytes:
    return stream.read(size + 1)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        double = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _Unwanted(f"the key {double[:_SHOWN_CHARS]!r} stands twice in one object")
    return content


def _no_number(name: str) -> NoReturn:
    raise _Unwanted(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Unwanted(f"{text[:_SHOWN_CHARS]} is no finite number")
    return number
