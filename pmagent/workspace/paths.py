"""Where what is made for a person may be left: inside the workspace, and away from what rules it."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.events.evidence import FOLDER

NAME_BYTES_MAX: Final = 200
"""Longest name of a file or folder: a temporary name beside it still fits."""
PATH_BYTES_MAX: Final = 1_024

_NOWHERE: Final = (FOLDER, ".git")


class BadPath(PmagentError, exit_code=2):
    """Nothing can be left there; ``message`` begins with what named the place."""


def inside(name: str, text: str, workspace: Path, forbidden: Collection[str]) -> str:
    """The path ``text`` relative to the workspace, without ``..``; one that stands well stays as it is. ``forbidden``
    are the folders of the workspace (lower case) in which nothing may be left. Raises BadPath."""
    below = relative(text, workspace)
    if below is None:
        raise BadPath(f"{name} is {text}, which is outside of the workspace", "name a path inside, e.g. ./runs")
    parts = below.split("/")
    if parts[0].lower() in forbidden or any(part.lower() in _NOWHERE for part in parts):
        raise BadPath(f"{name} is {text}, where nothing may be left", f"nothing in {', '.join(sorted(forbidden))}")
    return text if below == os.path.normpath(text) and ".." not in text.split("/") else f"./{below}"


def relative(text: str, workspace: Path) -> str | None:
    """The path ``text`` (absolute, or relative to the workspace), relative to the workspace; None: it is outside."""
    normal = os.path.normpath(text)
    if os.path.isabs(normal):
        roots = (os.path.normpath(workspace), os.path.realpath(workspace))
        normal = next((os.path.relpath(normal, root) for root in roots if _is_below(normal, root)), "..")
    return None if normal.split("/")[0] == ".." else normal


def check_names(name: str, path: str) -> None:
    """Raises BadPath where the path is no text or too long."""
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise BadPath(f"{name} is no text in UTF-8", "name another path") from None
    if len(raw) > PATH_BYTES_MAX or any(len(part) > NAME_BYTES_MAX for part in raw.split(b"/")):
        raise BadPath(
            f"{name} is too long: {path[:60]}…", f"at most {PATH_BYTES_MAX} bytes, {NAME_BYTES_MAX} between two slashes"
        )


def check_writable(name: str, workspace: Path, path: str, forbidden: Collection[str], other: str) -> None:
    """Look whether the file ``path`` of the workspace could be written: no link leads out, no file stands where a
    folder must be, folders may be written. ``other``: the flag that names another place. Raises BadPath."""
    root = Path(os.path.realpath(workspace))
    parts = [part for part in os.path.normpath(path).split("/") if part != "."]
    at = root
    for number, part in enumerate(parts):
        at = at / part
        is_folder = number < len(parts) - 1
        if is_folder and at.is_symlink():
            real = os.path.realpath(at)
            if not _is_below(real, str(root)):
                raise BadPath(f"{name} is {path}, which a link leads out of the workspace", "remove the link")
            inside(name, os.path.relpath(real, root), root, forbidden)
        if not os.path.lexists(at):
            break
        if is_folder and not at.is_dir():
            raise BadPath(f"{name} is {path}, but {at.relative_to(root)} is no folder", "move it out of the way")
    while not at.is_dir():
        at = at.parent
    if not os.access(at, os.W_OK | os.X_OK):
        shown = at.relative_to(root) if at != root else "the workspace"
        raise BadPath(f"{name} is {path}, but {shown} may not be written", f"change its permissions, or {other}")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
