"""Operators: the name as the contracts have it (docs/design.md §16.1)."""

from __future__ import annotations

import os
import pwd
import re
from typing import Final

from pmagent.contracts.pla import NOBODY
from pmagent.events.errors import PmagentError

_FIT: Final = re.compile(r"[A-Za-z0-9_-]{2,64}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")


class BadOperator(PmagentError, exit_code=2):
    """The name is none that an operator can have."""


def checked(name: str, source: str) -> str:
    """``name``, if it is an operator's; ``source`` says where it was given. Raises BadOperator."""
    if name == NOBODY:
        raise BadOperator(f"{source} is {NOBODY}, which stands for nobody", "give another, e.g. ada")
    if _FIT.fullmatch(name) is None:
        what = f"{source} is no operator's name: it has 2 to 64 letters, digits, _ and -"
        raise BadOperator(what, "give one that is, e.g. ada")
    return name


def login() -> str:
    """The name of this process's user, made to fit: other characters become ``-``; of a user without one the number."""
    try:
        name = _UNFIT.sub("-", pwd.getpwuid(os.getuid()).pw_name)[:64]
    except KeyError:
        name = ""
    return name if len(name) >= 2 and name != NOBODY else f"uid-{os.getuid()}"
