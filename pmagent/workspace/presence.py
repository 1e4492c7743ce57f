"""Whether a folder is a workspace at all."""

from __future__ import annotations

from pathlib import Path

from actors.kernel.surfaces import SHARE
from events.errors import NotFound, PmagentError
from pmagent.clean import escaped
from pmagent.layout import FOLDER


class BadPath(PmagentError):
    """The workspace's path is not UTF-8, and the log, which names it, holds only text."""

    exit_code = 2


def require_text(folder: Path) -> None:
    """Raises BadPath where the folder's path is not UTF-8."""
    if escaped(str(folder)) != str(folder):
        raise BadPath(f"the path {folder} is not UTF-8", "a workspace needs a path that is: rename the folder")


def require_workspace(folder: Path) -> None:
    """Raises NotFound where there are neither surfaces nor a log: none is begun just because somebody stands in the
    wrong folder."""
    if not (folder / FOLDER).is_dir() and not (folder / SHARE).is_dir():
        what = f"{folder} is no workspace: it has neither {SHARE}/ nor {FOLDER}/"
        raise NotFound(what, "pmagent init makes it one; --workspace names another")
