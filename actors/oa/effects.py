"""The OA's contact with the world: it writes share/oa/CONTEXT.json, and no other file (docs/design.md §12.7).

A write is repeatable: what a crash cut off is performed again after the next start, and finds out by itself whether
it has been done already.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

import anyio.to_thread
import msgspec

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.kernel.reader import LeadsOut, RealFiles, parse
from pmagent.actors.kernel.surfaces import CONTEXT
from pmagent.actors.oa.context import PATH
from pmagent.contracts.kernel import SURFACE_BYTES_MAX
from pmagent.contracts.reasoning_events import (
    OaContextRequested,
    OaContextUnwritten,
    OaContextWriteRequested,
    OaContextWritten,
)
from pmagent.events.atomic import write_atomic
from pmagent.events.event import Event

VERSION: Final = 1
"""Of the format of CONTEXT.json: ``{"version": 1, "context": {…}}``."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _Kept(Exception):
    """The file stays as it is: ``args`` are why, and what to do about it."""


async def write(event: Event, io: Io) -> OaContextWritten | OaContextUnwritten:
    """Performer of oa.context_write_requested. A write that has begun is let finish also when it is cancelled, so that
    the outcome is what really happened."""
    asked: OaContextWriteRequested = event.data
    request: OaContextRequested = (await io.event(asked.request)).data
    return await anyio.to_thread.run_sync(
        partial(write_context, io.workspace, event.position, request.context, asked.base)
    )


PERFORMERS: Final[Performers] = {OaContextWriteRequested: write}


def write_context(
    workspace: Path, request: int, context: dict[str, Any], base: str
) -> OaContextWritten | OaContextUnwritten:
    """Make ``context`` the content of CONTEXT.json if the file's SHA-256 is ``base`` ("": there is no file), or if the
    file is so already; blocking. ``request`` is the position that the outcome names. Raises nothing: whatever stands in
    the way is told, and the file is then as it was.
    """
    try:
        with _folder(workspace) as folder:
            content = _written(RealFiles(workspace), folder / PurePosixPath(PATH).name, context, base)
    except _Kept as kept:
        reason, mend = kept.args
    except OSError as error:
        reason = f"{PATH} cannot be written: {_cause(error)}"
        mend = "mend that (pmagent doctor looks at permissions and space), then ask again"
    else:
        digest = hashlib.sha256(content).hexdigest()
        return OaContextWritten(request=request, path=PATH, sha256=digest, size=len(content))
    return OaContextUnwritten(request=request, reason=reason, mend=mend)


def _written(files: RealFiles, path: Path, context: dict[str, Any], base: str) -> bytes:
    """Write, and return what the file holds now. Raises _Kept, OSError."""
    old = _read(files, path)
    content = _encoded({**_beside(old), "version": VERSION, "context": context})
    if content == old:
        return content  # a write that a crash cut off had been done; or somebody was of the same mind
    _require(old, base)
    write_atomic(path, content, last_look=lambda: _require(_read(files, path), base))
    return content


def _read(files: RealFiles, path: Path) -> bytes | None:
    """The file's bytes; None when there is none. Raises _Kept for one that is too large, OSError."""
    try:
        raw = files.read(path, SURFACE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(raw) > SURFACE_BYTES_MAX:
        raise _Kept(f"{PATH} holds more than {SURFACE_BYTES_MAX} bytes", "move it away, then ask again")
    return raw


def _require(found: bytes | None, base: str) -> None:
    """Raises _Kept when the file is not the one that the request was made on."""
    if (hashlib.sha256(found).hexdigest() if found is not None else "") != base:
        raise _Kept(
            f"{PATH} was changed by somebody else meanwhile", "look at it (pmagent oa context), then ask again on it"
        )


def _beside(old: bytes | None) -> dict[str, Any]:
    """The file's content beside version and context, which is not ours to forget. A file that is a bare context holds
    nothing beside it. Raises _Kept for a broken file: nobody knows what would be lost."""
    if old is None:
        return {}
    status, detail, content = parse(CONTEXT, old)
    if status != "ok":
        what = status.replace("_", " ") + (f" ({detail})" if detail else "")
        raise _Kept(f"{PATH} is broken: {what}", "repair or delete it, then ask again")
    return content if "context" in content else {}


def _encoded(content: dict[str, Any]) -> bytes:
    """The file's bytes: indented for people, unless that makes it larger than a surface may be. Raises _Kept."""
    plain = msgspec.json.encode(content)
    for raw in (msgspec.json.format(plain, indent=2), plain):
        if len(raw) < SURFACE_BYTES_MAX:
            return raw + b"\n"
    raise _Kept(f"{PATH} would be larger than {SURFACE_BYTES_MAX} bytes", "shorten what it holds beside the context")


@contextmanager
def _folder(workspace: Path) -> Iterator[Path]:
    """The folder of CONTEXT.json, made where it is missing, under a name that holds on to it: what was found to lie in
    the workspace is what is written into, whatever is put in its place meanwhile. Raises OSError, LeadsOut."""
    root = Path(os.path.realpath(workspace))
    descriptor = os.open(root, _FOLDER)
    try:
        for name in PurePosixPath(PATH).parent.parts:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=descriptor)
                os.fsync(descriptor)
            outer, descriptor = descriptor, os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(outer)
            if not Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(root):
                raise LeadsOut
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _cause(error: OSError) -> str:
    if isinstance(error, LeadsOut):
        return "a link leads out of the workspace"
    return error.strerror or type(error).__name__
