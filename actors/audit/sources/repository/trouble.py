"""The meaning of git's complaints, as ``trouble.toml`` has it; pure.

git says why it failed only in words (of ``LC_ALL=C``). They decide which cause is named; they are quoted only where no
cause is known, and then one short line without control characters.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any, Final

from pmagent.actors.audit.failures import SourceFailed

_LINE_CHARS: Final = 200

_CAUSES: Final[list[dict[str, Any]]] = tomllib.loads(
    files(__package__).joinpath("trouble.toml").read_text("utf-8")
)["cause"]
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")


def failed(stderr: bytes, hidden: tuple[str, ...] = ()) -> SourceFailed:
    """The failure that git's standard error tells of. ``hidden`` are texts that are not shown: our folder, say."""
    text = stderr.decode("utf-8", "replace")
    for cause in _CAUSES:
        if re.search("|".join(cause["complaints"]), text):
            return SourceFailed(cause["code"], f"the repository could not be fetched: {cause['says']}", cause["hint"])
    line = last_line(text, hidden)
    return SourceFailed(
        "git",
        f"the repository could not be fetched: git says {line!r}" if line else "the repository could not be fetched",
        "try git clone by hand; what works there works as a path here",
    )


def last_line(text: str, hidden: tuple[str, ...] = ()) -> str:
    """The last line that says something, made harmless and short."""
    for secret in hidden:
        text = text.replace(secret, "…")
    lines = [_UNPRINTABLE.sub(" ", line).strip() for line in re.split(r"[\r\n]", text)]
    said = [line for line in lines if line and not line.startswith(("remote:", "warning:", "hint:"))]
    return said[-1][:_LINE_CHARS] if said else ""
