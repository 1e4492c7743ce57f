"""Where this user's own state lies: outside of every workspace, so that no repository can bring it along."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
