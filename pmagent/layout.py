"""Where things lie in a workspace (DESIGN §2, §4, §7)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from events.atomic import write_atomic

FOLDER: Final = ".pmagent"
"""What belongs to pmagent; agents and tasks can never write it."""

GITIGNORE: Final = b"*\n!.gitignore\n!config.toml\n"
"""``.pmagent/.gitignore``: what a run leaves behind stays out of git; the settings are worth keeping in it."""


class Layout(msgspec.Struct, frozen=True):
    """The paths of one workspace (absolute)."""

    workspace: Path

    @property
    def folder(self) -> Path:
        """``.pmagent``."""
        return self.workspace / FOLDER

    @property
    def log(self) -> Path:
        """The segments and HEAD."""
        return self.folder / "log"

    @property
    def blobs(self) -> Path:
        """The content-addressed store."""
        return self.folder / "blobs"

    @property
    def lock(self) -> Path:
        """Held by the one writer."""
        return self.folder / "LOCK"

    @property
    def snapshot(self) -> Path:
        """The discardable cache of folded state."""
        return self.folder / "cache" / "snapshot"

    @property
    def run(self) -> Path:
        """What exists only while a daemon runs; only this user may look into it."""
        return self.folder / "run"

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.run / "daemon.sock"

    def prepare(self) -> None:
        """Make ``.pmagent`` and what must exist in it; what exists already stays. Raises OSError."""
        for folder in (self.folder, self.log, self.blobs, self.snapshot.parent, self.run):
            folder.mkdir(mode=0o700, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, GITIGNORE)


def workspace_of_log(folder: Path) -> Layout | None:
    """The workspace whose log lies in ``folder``; None where it is no workspace's."""
    for above in folder.absolute().parents:
        layout = Layout(above)
        if layout.log == folder.absolute():
            return layout
    return None
