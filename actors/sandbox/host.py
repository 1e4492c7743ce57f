"""Looks at the machine and at the folders that were asked for, before a run; blocking.

A grant that is impossible is refused here, before anything is started, with the path or package that it is about.
"""

from __future__ import annotations

import errno
import itertools
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from pmagent.actors.sandbox import syscalls
from pmagent.actors.sandbox.arguments import (
    HELPERS,
    MASKED,
    REPOSITORY,
    Guarded,
    Hidden,
    HostFacts,
    is_repository,
)
from pmagent.actors.sandbox.protected import PACKAGES, names
from pmagent.actors.sandbox.spec import (
    OWN_TMP,
    PLACES,
    SEARCH,
    SYSTEM,
    SandboxRefused,
    SandboxSpec,
    SandboxUnavailable,
    check,
    within,
)
from pmagent.events.user_state import VARIABLE, state_folder

SEEN_SECONDS: Final = 1.0
"""For so long a look at the machine is good for the next run with the same rights."""

ENTRIES_MAX: Final = 200_000
"""A writable folder with more entries than this cannot be guarded in good time."""

_ETC: Final = (
    "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates.conf", "/etc/alternatives",
    "/etc/localtime", "/etc/mime.types",
)  # fmt: skip
_IDS: Final = range(0x7000_0000, 0x7800_0000)
"""Ids that no user of the host has: each run of a privileged service gets one of its own."""

_OF_OURS: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors that are due to the service, and say nothing about a folder."""

_HOOKS: Final = re.compile(rb"^\s*hooksPath\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.MULTILINE | re.IGNORECASE)
_POINTER_BYTES_MAX: Final = 64 * 1024

_serial = itertools.count(os.getpid() * 1000)


def look(spec: SandboxSpec) -> HostFacts:
    """The facts for ``spec``. Raises SandboxRefused for what may not be, SandboxUnavailable where it cannot be."""
    check(spec)
    known = machine()
    # Under ``rw`` a tool may change what the next one is to see, so nothing of it is remembered.
    second = int(time.monotonic() // SEEN_SECONDS) if spec.fs == "read-only" else next(_serial)
    seen = _seen(second, os.environ.get(VARIABLE), os.environ.get("HOME"), spec.visible, spec.hide, spec.argv[0])
    given = {spec.inputs} if spec.inputs else set()
    for path in sorted({spec.artifacts, *given}):
        _check_plain(path)
    privileged = os.geteuid() == 0
    uid, gid, idmapped = _tool_ids(spec, privileged=privileged)
    if privileged:
        for path in sorted({*spec.allow_read, *spec.allow_write, *given} - {OWN_TMP}):
            if not any(within(path, folder) for folder in idmapped):
                _check_visible(path, uid, gid)
    return HostFacts(
        machine=known, privileged=privileged, uid=uid, gid=gid, program=seen.program, system=seen.system, etc=seen.etc,
        guarded=tuple(_guarded(spec, seen.hidden)) if spec.fs == "rw" else (), hidden=seen.hidden, idmapped=idmapped,
        checked=spec,
    )


class _Seen(NamedTuple):
    """Findings of a look at the machine that hold for all runs with these rights."""

    program: str
    system: tuple[tuple[str, str], ...]
    etc: tuple[str, ...]
    hidden: tuple[Hidden, ...]


@lru_cache(maxsize=64)
def _seen(
    _second: int, _state: str | None, _home: str | None, visible: tuple[str, ...], hide: tuple[str, ...], program: str
) -> _Seen:
    """Look; not again for the same in the same second, in the same environment. A path that has become a link since is
    found when it is opened (``launch.opened``). Raises SandboxRefused, SandboxUnavailable."""
    for helper in HELPERS:
        if not os.access(helper, os.X_OK):
            raise SandboxUnavailable(f"{helper} is not there; it sets a tool's limits", "apt-get install util-linux")
    for path in sorted({*visible} - {OWN_TMP}):
        _check_plain(path)
    return _Seen(
        _program(program, visible), tuple((path, _target(path)) for path in SYSTEM if os.path.exists(path)),
        tuple(path for path in _ETC if os.path.exists(path)), tuple(_hidden(visible, hide)),
    )


def machine() -> str:
    """``uname -m`` here. Raises SandboxUnavailable where its system calls are not known, and so cannot be filtered."""
    found = platform.machine()
    if found not in syscalls.MACHINES:
        raise SandboxUnavailable(
            f"no system call filter for {found} machines", f"run tools on {' or '.join(syscalls.MACHINES)}"
        )
    return found


def protected_in(folder: str, closed: list[str] | None = None, links: dict[str, str] | None = None) -> set[str]:
    """All paths in ``folder`` with a protected name, links and missing targets included, and the ``HEAD`` of what is a
    repository under another name; what lies in one is not looked at, but in ``folder`` itself it is. ``links`` gets the
    other symbolic links, and where each of them leads.

    Raises SandboxRefused when there are too many entries to look at, or a folder that cannot be looked through. With
    ``closed`` it looks at all there is, opens folders that were closed to their owner, and tells there of the others.
    """
    found: set[str] = set()
    seen = 0
    pending = [(folder, os.path.basename(folder) in PACKAGES)]
    while pending:
        here, packaged = pending.pop()
        obeyed = names(packaged=packaged)
        present: set[str] = set()
        below: list[tuple[str, bool]] = []
        try:
            listed = _listed(here, closed)
        except FileNotFoundError:
            if here == folder:
                raise
            continue  # somebody has removed it meanwhile
        with listed as entries:
            for entry in entries:
                seen += 1
                present.add(entry.name)
                if seen > ENTRIES_MAX and closed is None:
                    raise SandboxRefused(
                        f"{folder} has more than {ENTRIES_MAX} entries and cannot be guarded",
                        "make less of it writable",
                    )
                if entry.name.lower() in obeyed:
                    found.add(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    below.append((entry.path, packaged or entry.name in PACKAGES))
                elif links is not None and entry.is_symlink():
                    links |= _leads(entry.path)
        repository = is_repository(present)
        if repository:
            found.add(f"{here}/{REPOSITORY}")
        if not repository or here == folder:
            pending += below
    return found


def _leads(path: str) -> dict[str, str]:
    """Where the link at ``path`` leads; nothing when somebody has removed or replaced it meanwhile."""
    try:
        return {path: os.readlink(path)}
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EINVAL}:
            raise
        return {}


def _listed(folder: str, closed: list[str] | None) -> AbstractContextManager[Iterable[os.DirEntry[str]]]:
    """Its entries; with ``closed``, none where it cannot be looked through, which is told there. Raises as
    ``_entries``."""
    try:
        return _entries(folder, openly=closed is None)
    except SandboxRefused as refusal:
        if closed is None:
            raise
        closed.append(refusal.message)
        return nullcontext(())


def _entries(folder: str, *, openly: bool) -> os._ScandirIterator[str]:
    """Raises SandboxRefused, FileNotFoundError; OSError for what says nothing of the folder."""
    try:
        if not openly:
            mode = stat.S_IMODE(os.lstat(folder).st_mode)
            if mode & 0o500 != 0o500:
                os.chmod(folder, mode | stat.S_IRWXU)
        return os.scandir(folder)
    except OSError as error:
        if error.errno in _OF_OURS or isinstance(error, FileNotFoundError):
            raise
        raise SandboxRefused(
            f"{folder} cannot be looked through ({error.strerror}), so it cannot be guarded", "mend its permissions"
        ) from error


def _target(path: str) -> str:
    return os.readlink(path) if os.path.islink(path) else ""


def _check_plain(path: str) -> None:
    """A link, anywhere in the path, could lead elsewhere by the time it is used."""
    try:
        real = os.path.realpath(path, strict=True)
    except OSError as error:
        raise SandboxRefused(f"{path} cannot be shown: {error.strerror}", "create it, or take it out") from error
    if real != path:
        raise SandboxRefused(f"{path} leads through a link to {real}", "name the real path")
    kind = os.lstat(path).st_mode
    if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
        raise SandboxRefused(f"{path} is neither a folder nor a regular file", "take it out")


def _tool_ids(spec: SandboxSpec, *, privileged: bool) -> tuple[int, int, tuple[str, ...]]:
    """The service's own where it is an ordinary user; for root, those of the owner of what is to be written, else ids
    that nobody has. And root's own folders among the writable ones, which must be id-mapped for the tool."""
    if not privileged:
        return os.geteuid(), os.getegid(), ()
    writable = (*spec.writable, *spec.homes)
    owners = {(found.st_uid, found.st_gid) for found in map(os.lstat, writable)}
    if owners <= {(0, 0)}:
        own = _IDS[next(_serial) % len(_IDS)]
        return own, own, writable
    uid, gid = min(owners)
    if len(owners) > 1 or uid == 0 or gid == 0:
        raise SandboxRefused(
            f"{', '.join(writable)}: tools never run as root, and these do not all belong to one user and group",
            "chown them to one user and group, or start pmagent as an ordinary user",
        )
    return uid, gid, ()


def _check_visible(path: str, uid: int, gid: int) -> None:
    """Bubblewrap, as root, could mount it; the tool could still not open it, and would say so in its own odd way."""
    found = os.lstat(path)
    mode = found.st_mode
    granted = mode >> 6 if found.st_uid == uid else mode >> 3 if found.st_gid == gid else mode
    needed = 0o5 if stat.S_ISDIR(mode) else 0o4
    if granted & needed != needed:
        raise SandboxRefused(
            f"{path} can be read by its owner only, and tools never run as root", f"chmod o+rX {path}, or take it out"
        )


def _program(name: str, visible: tuple[str, ...]) -> str:
    if "/" not in name:
        found = shutil.which(name, path=":".join(SEARCH))
        if found is None:
            raise SandboxRefused(f"there is no program {name} in {', '.join(PLACES)}", "install it in one of them")
        return found
    shown = (*SYSTEM, *visible)
    if not name.startswith("/") or not any(within(os.path.normpath(name), folder) for folder in shown):
        raise SandboxRefused(f"the program {name} is not visible to tools", "name it without a path, or allow it")
    if not os.path.isfile(name):
        raise SandboxRefused(f"there is no program {name}", "install it")
    return name


def _hidden(visible: tuple[str, ...], hide: tuple[str, ...]) -> Iterator[Hidden]:
    """Of what is to be hidden, what exists and would be seen; this user's own state always is: it says what is trusted.
    Raises SandboxRefused where a link is on the way."""
    state = state_folder()
    own = (os.path.realpath(state),) if state is not None else ()
    shown = {*visible} - {OWN_TMP}
    done: list[str] = []
    for path in sorted({*hide, *own}, key=lambda path: path.split("/")):
        real = os.path.realpath(path)
        if real != path:
            raise SandboxRefused(f"{path} is to be hidden, and leads through a link to {real}", "name the real path")
        seen = any(within(path, folder) for folder in shown)
        if seen and os.path.lexists(path) and not any(within(path, above) for above in done):
            done.append(path)
            yield Hidden(path, folder=os.path.isdir(path))


def _guarded(spec: SandboxSpec, hidden: tuple[Hidden, ...]) -> Iterator[Guarded]:
    """Every protected path in a writable folder, and the first part that is missing of those that do not exist."""
    writable = spec.writable
    packages = [path for path in map(os.path.realpath, spec.packages) if not any(within(one, path) for one in writable)]
    kept = (*spec.protect, *spec.hide, *packages)
    wanted = {path for path in kept if any(within(path, folder) for folder in writable)}
    for folder in writable:
        if os.path.isdir(folder):
            wanted |= set(_whole(protected_in(folder), folder))
            wanted |= {f"{folder}/{name}" for name in MASKED}
    for pointed in sorted(path for git in wanted if git.endswith("/.git") for path in _pointed(git)):
        if any(within(pointed, folder) and pointed != folder for folder in writable):
            wanted.add(pointed)
    done = [hide.path for hide in hidden]
    for path in sorted(wanted, key=lambda path: path.split("/")):
        guarded = _guard(path, next(folder for folder in writable if within(path, folder)))
        if not any(within(guarded.path, above) for above in done):  # what is above guards it too
            done.append(guarded.path)
            yield guarded


def _whole(found: set[str], folder: str) -> Iterator[str]:
    """Instead of the ``HEAD`` of a repository all of it; of ``folder`` itself, to be written, what git obeys in it."""
    for path in found:
        if os.path.basename(path) != REPOSITORY:
            yield path
        elif os.path.dirname(path) != folder:
            yield os.path.dirname(path)
        else:
            yield from (path, f"{folder}/config", f"{folder}/hooks", f"{folder}/commondir")


def _guard(path: str, folder: str) -> Guarded:
    """Raises SandboxRefused where a link is on the way: a link in a writable folder can be replaced by anything."""
    here = folder
    for part in path.removeprefix(folder).strip("/").split("/"):
        here = f"{here}/{part}"
        if os.path.islink(here):
            raise SandboxRefused(f"{here} is protected and a link, which cannot be guarded", "make less of it writable")
        if not os.path.lexists(here):
            return Guarded(here, missing=True)
    return Guarded(path, missing=False)


def _pointed(git: str) -> Iterator[str]:
    """Where a ``.git`` leads: the folder that a worktree's file names, its common folder, the hooks of its config."""
    base = os.path.dirname(git)
    home = git
    if os.path.isfile(git):
        text = _start_of(git)
        if not text.startswith(b"gitdir:"):
            return
        home = os.path.normpath(os.path.join(base, os.fsdecode(text.removeprefix(b"gitdir:").strip())))
        yield home
    if common := os.fsdecode(_start_of(f"{home}/commondir").strip()):
        home = os.path.normpath(os.path.join(home, common))
        yield home
    for found in _HOOKS.findall(_start_of(f"{home}/config")):
        yield os.path.normpath(os.path.join(base, os.fsdecode(found)))


def _start_of(path: str) -> bytes:
    """The start of a small regular file; nothing where there is none."""
    if not os.path.isfile(path):
        return b""
    with Path(path).open("rb") as file:
        return file.read(_POINTER_BYTES_MAX)
