"""Whether a folder is a workspace at all."""

from __future__ import annotations

from pathlib import Path

from actors.kernel.surfaces import SHARE
from events.errors import NotFound
from pmagent.layout import FOLDER


def require_workspace(folder: Path) -> None:
    """Raises NotFound where there are neither surfaces nor a log: none is begun just because somebody stands in the
    wrong folder."""
    if not (folder / FOLDER).is_dir() and not (folder / SHARE).is_dir():
        what = f"{folder} is no workspace: it has neither {SHARE}/ nor {FOLDER}/"
        raise NotFound(what, "pmagent init makes it one; --workspace names another")
