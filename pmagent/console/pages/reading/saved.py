"""Filters of the Log page that operators have saved: for all who sign in here, in a file of the console's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError

SAVED_MAX: Final = 50
NAME_CHARS_MAX: Final = 60
ADDRESS_CHARS_MAX: Final = 2_000


class NotSaved(PmagentError, exit_code=1):
    """A filter could not be saved; nothing was changed."""


class Saved(msgspec.Struct, frozen=True):
    """A filter: its ``name``, the ``query`` of its address, and the operator who saved it."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
    query: Annotated[str, msgspec.Meta(max_length=ADDRESS_CHARS_MAX)]
    operator: str


_decoder: Final = msgspec.json.Decoder(list[Saved])


def saved(file: Path) -> list[Saved]:
    """All of them by name; none where the file is not there, or is not understood."""
    try:
        return _decoder.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError):
        return []


def save(file: Path, one: Saved) -> None:
    """Keep it, in place of one of the same name. Raises NotSaved."""
    kept = [other for other in saved(file) if other.name != one.name]
    if len(kept) >= SAVED_MAX:
        raise NotSaved(f"there are {SAVED_MAX} saved filters already", "remove one first")
    _write(file, sorted([*kept, one], key=lambda each: each.name.casefold()))


def remove(file: Path, name: str) -> None:
    """Forget the one of this name. Raises NotSaved."""
    _write(file, [one for one in saved(file) if one.name != name])


def _write(file: Path, all_of_them: list[Saved]) -> None:
    try:
        write_atomic(file, msgspec.json.encode(all_of_them), 0o600)
    except OSError as error:
        raise NotSaved(f"the filters cannot be written: {error.strerror}", "pmagent doctor looks closer") from error
