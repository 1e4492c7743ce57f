"""Where things lie in a workspace (docs/design.md §2, §7, §11)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from pmagent.events.atomic import write_atomic
from pmagent.events.evidence import FOLDER, Evidence, evidence, log_of
from pmagent.events.store import LogStore
from pmagent.events.tree import held

GITIGNORE: Final = b"*\n!.gitignore\n!config.toml\n!policy.yaml\n!policy.cedar\n"
"""``.pmagent/.gitignore``: what a run leaves behind stays out of git; the settings are worth keeping in it."""

POLICY: Final = f"{FOLDER}/policy.yaml"
"""The rules by which calls of guests are judged; ``policy.cedar`` may lie beside it."""
POLICY_BYTES_MAX: Final = 256 * 1024

_REPOSITORY: Final = {
    "HEAD": b"ref: refs/heads/none\n",
    "config": b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
}
"""The files of an empty git repository, besides its folders ``objects`` and ``refs``."""


def template(name: str, **values: str) -> str:
    """The text of ``templates/name``, with its ``$names`` replaced by ``values``."""
    from string import Template  # few commands write such a text

    return Template((Path(__file__).with_name("templates") / name).read_text("utf-8")).substitute(values)


_UNKNOWN: Final = Evidence(Path(), Path(), Path())


class Layout(msgspec.Struct, frozen=True):
    """The paths of one workspace (absolute). Where the evidence lies is looked up once, when it is made."""

    workspace: Path
    evidence: Evidence = _UNKNOWN

    def __post_init__(self) -> None:
        if self.evidence is _UNKNOWN:
            msgspec.structs.force_setattr(self, "evidence", evidence(self.workspace))

    @property
    def folder(self) -> Path:
        """``.pmagent``."""
        return self.workspace / FOLDER

    @property
    def home(self) -> Path:
        """``.pmagent/data``, which git leaves alone; ``.pmagent`` in a workspace of an earlier release."""
        return self.evidence.home

    @property
    def log(self) -> Path:
        """The folder of the log, for messages and rules about files; ``store`` opens the log."""
        return self.evidence.log

    @property
    def blobs(self) -> Path:
        """The folder of the content-addressed store."""
        return self.evidence.blobs

    @property
    def store(self) -> LogStore:
        """The store of the log and its blobs, whether or not there is a log."""
        return log_of(self.workspace, self.evidence)

    @property
    def snapshot(self) -> Path:
        """The discardable cache of folded state."""
        return self.home / "cache" / "snapshot"

    @property
    def run(self) -> Path:
        """The folder for files that exist only while a daemon runs; open to this user only."""
        return self.home / "run"

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.run / "daemon.sock"

    @property
    def guest_socket(self) -> Path:
        """The socket at which the hooks of guests ask."""
        return self.run / "guest.sock"

    @property
    def spool(self) -> Path:
        """The folder where hooks leave what no daemon took."""
        return self.home / "spool"

    @property
    def key(self) -> Path:
        """The log's key: what digests of calls are made with. It never enters the log."""
        return self.home / "key"

    def prepare(self) -> None:
        """Make ``.pmagent`` and what must exist in it; what exists already stays. Raises OSError."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.home != self.folder:
            _repository(self.home)
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.log, self.blobs, self.snapshot.parent, self.run):
            folder.mkdir(mode=0o700, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, GITIGNORE)


def _repository(folder: Path) -> None:
    """Make ``folder`` an empty git repository: git then leaves alone what lies in it, whatever it does around it."""
    git = folder / ".git"
    for made in (folder, git, git / "objects", git / "refs"):
        made.mkdir(mode=0o700, exist_ok=True)
    for name, content in _REPOSITORY.items():
        if not (git / name).exists():
            write_atomic(git / name, content, 0o600)


def workspace_around(start: Path) -> Path:
    """The nearest folder with ``.pmagent``, from ``start`` up to the root of its git repository; else that root.

    Outside of a repository it is ``start``: a folder further up may be anybody's.
    """
    if FOLDER in start.parts:  # .pmagent/data is a repository of its own
        start = Path(*start.parts[: start.parts.index(FOLDER)])
    folders = (start, *start.parents)
    root = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return next((folder for folder in folders[: root + 1] if (folder / FOLDER).is_dir()), folders[root])


def workspace_of_log(folder: Path) -> Layout | None:
    """The workspace whose log lies in ``folder``; None where it is no workspace's."""
    for above in folder.absolute().parents:
        layout = Layout(above)
        if layout.log == folder.absolute():
            return layout
    return None


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """An address for the socket at ``path``, of any length, while the block lasts. Raises OSError."""
    with held(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
        yield f"/proc/self/fd/{folder}/{path.name}"
