"""Rubrics from files, and the one that ships with the program."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

from pmagent.actors.audit.rubric import BadRubric, Rubric, read_rubric
from pmagent.actors.audit.rubric_shape import Fault
from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX

DEFAULT: Final = "default"
"""The source name of the rubric that ships with the program."""


def default_rubric() -> Rubric:
    """The rubric for an agent project in Python."""
    return read_rubric(files("pmagent").joinpath("data", "rubric.json").read_bytes(), DEFAULT)


def load_rubric(path: str | Path | None = None) -> Rubric:
    """The rubric in a file, or the default one. Raises BadRubric, also where the file cannot be read."""
    if path is None:
        return default_rubric()
    return read_rubric(_content(Path(path)), str(path))


def _content(path: Path) -> bytes:
    """At most one byte more than a rubric may have. A pipe or device, that might never end, is not opened."""
    try:
        if path.exists() and not path.is_file():
            raise BadRubric(str(path), Fault((), "file", "it is no file", "give the path of a rubric in JSON"))
        with path.open("rb") as file:
            return file.read(RUBRIC_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise BadRubric(str(path), Fault((), "file", "there is no such file", "check the path")) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        hint = "check the path, and that you may read it"
        raise BadRubric(str(path), Fault((), "file", "the file cannot be read", hint)) from error
