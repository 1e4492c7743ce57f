"""Quarantines protected names and escaping links that a run left in writable folders; blocking. Called when all
processes of the run have ended."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pmagent.actors.sandbox.arguments import REPOSITORY, Guarded
from pmagent.actors.sandbox.host import protected_in
from pmagent.actors.sandbox.protected import is_named
from pmagent.actors.sandbox.spec import SYSTEM, SandboxSpec, within


class Known(NamedTuple):
    """Of one writable folder: the protected paths in it, and its other symbolic links, with where they lead."""

    protected: set[str]
    links: dict[str, str]


Before = Mapping[str, Known]
"""Writable folder -> its state before the run."""


def before(spec: SandboxSpec) -> Before:
    """Scan the writable folders. Raises SandboxRefused where one cannot be scanned."""
    return {path: _known(path) for path in spec.writable if os.path.isdir(path)}


def clear(spec: SandboxSpec, found: Before, guarded: Sequence[Guarded]) -> tuple[str, ...]:
    """Remove the stand-ins, and move aside every path that got a protected name since ``before`` and every new link
    that leads out of the writable folders or to a protected path. Returns a report of each, with its new path.

    No content is deleted: the host's own user may have made it meanwhile. A folder that can no longer be scanned is
    reported too, for it may hide anything.
    """
    stand_ins = [guard.path for guard in guarded if guard.missing]
    for path in stand_ins:
        with contextlib.suppress(OSError):  # somebody of the host has filled it or taken it away: theirs now
            os.rmdir(path)
    kept = (*(guard.path for guard in guarded), *spec.protect, *spec.hide)
    reports: list[str] = []
    done = set(stand_ins)
    for folder, known in found.items():
        pending = [folder]
        while pending:
            here, closed = pending.pop(), list[str]()
            try:
                now = _known(here, closed)
            except OSError as error:
                reports.append(f"{here} could not be looked through: {error.strerror}")
                continue
            out = dict.fromkeys(now.protected - known.protected - done, "")
            for link, target in now.links.items():
                new = link not in done and known.links.get(link) != target
                if new and _leads_out(link, target, spec, kept):
                    out[link] = f", a link to {target}"
            reports += closed
            for path, what in sorted(out.items()):
                done.add(path)
                text, look = _moved(path)
                reports.append(f"{path}{what}{text}")
                pending += look
    return tuple(os.fsencode(text).decode("utf-8", "backslashreplace") for text in reports)


def _known(folder: str, closed: list[str] | None = None) -> Known:
    links: dict[str, str] = {}
    return Known(protected_in(folder, closed, links), links)


def _leads_out(link: str, target: str, spec: SandboxSpec, kept: Sequence[str]) -> bool:
    """Whether a link leads elsewhere than to what may be written, and to no program or library of the system or of
    ``spec.shows`` either (a virtual environment of Python has such links). An absolute target must say so itself: what
    one in /proc leads to depends on who follows it."""
    writable = spec.writable
    real = os.path.realpath(link)
    targets = [real, *([os.path.normpath(target)] if target.startswith("/") else [])]
    if all(_among(target_path, writable) for target_path in targets):
        below = next(real.removeprefix(folder) for folder in writable if within(real, folder))
        return is_named(below) or _among(real, kept)
    return not (os.path.isfile(real) and all(_among(target_path, (*SYSTEM, *spec.shows)) for target_path in targets))


def _among(path: str, folders: Sequence[str]) -> bool:
    return any(within(path, folder) for folder in folders)


def _moved(path: str) -> tuple[str, list[str]]:
    """Move aside what was planted; in the place of a link comes a file that says where it led. Tells where to, or why
    not, and the folder that has to be looked through only now: it had a protected name, or was a repository."""
    aside = _free(f"{path}.planted")
    try:
        with _opened(os.path.dirname(path)):
            os.rename(path, aside)
            if os.path.islink(aside):
                target = os.readlink(aside)
                os.unlink(aside)
                with Path(aside).open("xb") as file:
                    file.write(os.fsencode(target) + b"\n")
    except OSError as error:
        return f", which could not be moved: {error.strerror}", []
    if os.path.isdir(aside):
        return f", now {aside}", [aside]
    return f", now {aside}", [os.path.dirname(path)] if os.path.basename(path) == REPOSITORY else []


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[None]:
    """With the right to change ``folder``, which may have been closed behind what was planted."""
    mode = stat.S_IMODE(os.lstat(folder).st_mode)
    os.chmod(folder, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        os.chmod(folder, mode)


def _free(path: str) -> str:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}-{number}"
    return free
