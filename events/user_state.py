"""Where this user's own state lies: outside of every workspace, so that no repository can bring it along."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

VARIABLE: Final = "XDG_STATE_HOME"
NAME: Final = "pmagent"


def state_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """``$XDG_STATE_HOME/pmagent``, by default ``~/.local/state/pmagent``; None where this user has no home directory.

    A relative XDG_STATE_HOME is ignored, as its specification demands. Without HOME the user database is asked.
    """
    given = os.environ if environ is None else environ
    state = given.get(VARIABLE, "")
    if os.path.isabs(state):
        return Path(state) / NAME
    home = given.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return Path(home) / ".local" / "state" / NAME if os.path.isabs(home) else None


ACCEPTED: Final = "accepted"
"""The folder of what this user has accepted of each workspace's configuration (``pmagent.workspace.trust``)."""


class _Powers(msgspec.Struct, frozen=True):
    items: list[str] = []


class _Accepted(msgspec.Struct, frozen=True):
    powers: _Powers = _Powers()


def entry_name(workspace: Path) -> str:
    """The name of the files that this user's state has about ``workspace``."""
    return f"{sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:40]}.json"


def accepted_powers(workspace: Path) -> list[str]:
    """The powers that this user has accepted for ``workspace``; none where the record is missing, damaged, or in reach
    of others."""
    folder = state_folder()
    if folder is None:
        return []
    try:
        for place in (folder, folder / ACCEPTED):
            found = place.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
                return []
        raw = (folder / ACCEPTED / entry_name(workspace)).read_bytes()
        return msgspec.json.decode(raw, type=_Accepted).powers.items
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
