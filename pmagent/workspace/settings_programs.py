"""The tables ``[checks]`` and ``[guards]`` of the settings: name -> program and its arguments (docs/checks.md).

They come from the file alone: what runs is for whoever may write ``.pmagent`` to say, and no tool may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pmagent.events.errors import PmagentError

TABLES: Final = ("checks", "guards")

Programs = Mapping[str, tuple[str, ...]]
"""Name -> program and arguments, in the order of the file."""

PROGRAMS_MAX: Final = 100
NAME_CHARS_MAX: Final = 100
ARGUMENTS_MAX: Final = 100
ARGUMENT_CHARS_MAX: Final = 4096
"""The contracts' bounds (``pmagent.contracts.checks``); a test holds them together, for commands that only read import
none."""
TOTAL_CHARS_MAX: Final = 16 * 1024
"""Of the arguments of one program."""

BUILT_IN_CHECKS: Final = ("Bootstrap Consistency", "Handoff Kernel", "Surface Schema", "Log Integrity", "OA State")
BUILT_IN_GUARDS: Final = (
    "oa_state", "bootstrap_consistency", "handoff_kernel", "dms_alignment", "surface_schema", "oa_tools",
    "reasoning_bridge", "log_integrity", "projections",
)
"""Names that are taken. (Their tables belong to the surfaces and the guards; a test holds them together.)"""

_GUARD_NAME: Final = re.compile(r"[a-z0-9_]+")


class ConfigError(PmagentError, exit_code=2):
    """A setting that is not understood."""


def normalized(name: str) -> str:
    """A guard's name as it is looked up: people write "OA-State", "reality.green" and the like."""
    return name.strip().lower().replace("-", "_").replace(".", "_")


def programs(file: Path, table: str, content: object) -> dict[str, tuple[str, ...]]:
    """The programs of one of ``TABLES``; guards by their normalized names. Raises ConfigError."""
    if not isinstance(content, dict):
        mend = f'write [{table}], and below it: name = ["program", "argument"]'
        raise ConfigError(f"{file}: {table} is no table", mend)
    if len(content) > PROGRAMS_MAX:
        raise ConfigError(f"{file}: [{table}] has {len(content)} entries", f"at most {PROGRAMS_MAX} are run")
    found: dict[str, tuple[str, ...]] = {}
    for name, argv in content.items():
        where = f"{file}: {table}.{_shown(name)}"
        known = _NAMES[table](where, name)
        if known in found:
            raise ConfigError(f"{where}: another entry is called {known!r} already", "give each a name of its own")
        found[known] = _argv(where, argv)
    return found


def _check_name(where: str, name: str) -> str:
    _bounded(where, name)
    if name.casefold() in {taken.casefold() for taken in BUILT_IN_CHECKS}:
        raise ConfigError(f"{where}: a built-in check has this name", "choose another")
    return name


def _guard_name(where: str, name: str) -> str:
    _bounded(where, name)
    known = normalized(name)
    if not _GUARD_NAME.fullmatch(known):
        raise ConfigError(f"{where}: a guard's name is made of letters, digits and _", "choose another")
    if known in BUILT_IN_GUARDS:
        raise ConfigError(f"{where}: a built-in guard has this name", "choose another")
    return known


_NAMES: Final[dict[str, Callable[[str, str], str]]] = {"checks": _check_name, "guards": _guard_name}


def _bounded(where: str, name: str) -> None:
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or name != name.strip():
        mend = f"use 1 to {NAME_CHARS_MAX} printable characters, without blanks around them"
        raise ConfigError(f"{where}: this is no name", mend)


def _argv(where: str, given: Any) -> tuple[str, ...]:
    """Raises ConfigError for anything but a list of texts that a program can be started with."""
    if not isinstance(given, list) or not given or not all(isinstance(word, str) and word for word in given):
        raise ConfigError(f"{where}: this is no list of texts", 'write program and arguments: ["make", "test"]')
    if any("\0" in word for word in given):
        raise ConfigError(f"{where}: an argument holds a NUL character", "remove it: no program can be given one")
    if not given[0].isprintable():
        raise ConfigError(f"{where}: the program's name is not printable", "name a program")
    longest = max(map(len, given))
    if len(given) > ARGUMENTS_MAX or longest > ARGUMENT_CHARS_MAX or sum(map(len, given)) > TOTAL_CHARS_MAX:
        bounds = f"{ARGUMENTS_MAX} arguments, {ARGUMENT_CHARS_MAX} characters in one, {TOTAL_CHARS_MAX} in all"
        raise ConfigError(f"{where}: this is too long", f"at most {bounds}; put the rest into a script")
    return tuple(given)


def _shown(name: str) -> str:
    """A name for an error: cut, and printable."""
    return name if len(name) <= NAME_CHARS_MAX and name.isprintable() else ascii(name[:NAME_CHARS_MAX])
