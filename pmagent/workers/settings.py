"""``worker.toml``: what a worker's host lets attempts of others do. Whatever it does not name is not permitted."""

from __future__ import annotations

import os
import re
import socket
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pmagent.actors.orchestra.running.sandbox_spec import absolute
from pmagent.actors.sandbox.spec import OWN_TMP, within
from pmagent.contracts.orchestra_config import Domain, Label, ToolName
from pmagent.contracts.shape import Misfit, fit
from pmagent.events.attempts import LOAD_BYTES_MAX
from pmagent.events.errors import PmagentError
from pmagent.workers.wish import Wish

_MIB: Final = 2**20
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="a name, at most 63 characters")]
_Log = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", description="the name of a log")]
_Size = Annotated[int, Meta(ge=1, le=1_048_576, description="a number of MiB")]


class BadWorker(PmagentError, exit_code=2):
    """worker.toml cannot be obeyed."""


class UnsafeWorker(PmagentError, exit_code=7):
    """Others could change what this worker obeys."""


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most that one attempt may be given, write and use, in MiB and seconds."""

    load_mib: _Size = LOAD_BYTES_MAX // _MIB
    output_mib: _Size = 64
    memory_mib: _Size = 2_048
    processes: Annotated[int, Meta(ge=1, le=4_096, description="a number of processes")] = 64
    seconds: Annotated[int, Meta(ge=1, le=86_400, description="a number of seconds")] = 1800


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The PLA's device that is plugged into this host: its port ("": found by its USB identity), and the serial number
    that it must have ("": whichever), as ``pla.device`` and ``pla.device_serial`` say of a daemon's own."""

    device: str = ""
    serial: str = ""


class WorkerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``database``: an address without a log; ``name``: of this worker, for people; ``labels``: an attempt is taken
    that asks for none but these; ``capacity``: so many at once; ``logs``: of which logs; ``tools``: the programs;
    ``paths``: folders of this host that attempts may read; ``hosts``: that they may reach; ``folder``: where they work;
    ``replicated``: whether what no standby has confirmed does not count; ``line``: the device whose line it carries."""

    database: str = ""
    name: _Name = ""
    labels: Annotated[list[Label], Meta(max_length=16)] = []
    capacity: Annotated[int, Meta(ge=1, le=256, description="a number from 1 to 256")] = 1
    logs: Annotated[list[_Log], Meta(max_length=100)] = []
    tools: Annotated[list[ToolName], Meta(max_length=100)] = []
    paths: Annotated[list[str], Meta(max_length=100)] = []
    hosts: Annotated[list[Domain], Meta(max_length=1_000)] = []
    folder: str = "/var/lib/pmagent-worker"
    replicated: bool = True
    sizes: Sizes = Sizes()
    line: Device | None = None


def read_settings(path: Path, join: str = "") -> WorkerFile:
    """The settings in the file at ``path``; ``join`` names the database instead. Raises BadWorker, UnsafeWorker."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            content = file.read()
    except OSError as error:
        raise BadWorker(f"{path}: {error.strerror}", "docs/machines.md shows one") from error
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.getuid()) or found.st_mode & 0o022:
        raise UnsafeWorker(f"{path} can be changed by others", f"chown it to this user, and chmod go-w {path}")
    try:
        made = fit(tomllib.loads(content.decode()), WorkerFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadWorker(f"{path} is no TOML: {error}", "correct it") from error
    except Misfit as misfit:
        raise BadWorker(f"{path}: {misfit.message}", misfit.hint) from misfit
    made = msgspec.structs.replace(
        made, database=join or made.database, name=made.name or re.sub("[^A-Za-z0-9.-]", "-", socket.gethostname())[:63]
    )
    for name, lack in (("database", "no database"), ("logs", "no log"), ("tools", "no program")):
        if not getattr(made, name) and not (name == "tools" and made.line is not None):
            raise BadWorker(f"{path} names {lack}", f"write {name} = …; nothing else is permitted")
    ports = [made.line.device] if made.line is not None and made.line.device else []
    for one in (*made.paths, *ports, made.folder):
        if os.path.normpath(one) != one or not os.path.isabs(one):
            raise BadWorker(f"{path}: {one} is no absolute, normal path", "write it from / on, without . and ..")
    return made


def refusal(wish: Wish, log: str, root: str, settings: WorkerFile) -> str:
    """Why this worker does not make the attempt of a log's workspace, whose files lie at ``root``; "": it does."""
    task, config = wish.assigned.assignment, wish.config
    sandbox = task.constraints.sandbox
    if log not in settings.logs:
        return f"the log {log} is not among its logs"
    if sandbox.fs != "read-only":
        return "fs: rw changes the workspace, which stays on its own host"
    if task.tools[0] not in settings.tools:
        return f"{task.tools[0]} is not among its tools"
    if sandbox.net == "allow" and (beyond := set(config.security.net.allow_domains) - set(settings.hosts)):
        return f"{min(beyond)} is not among its hosts"
    for path in absolute(root, config.security.fs.allow_read):
        if path != OWN_TMP and not any(within(path, one) for one in (root, *settings.paths)):
            return f"{path} is not among its paths"
    if wish.asked.seconds > settings.sizes.seconds:
        return f"{wish.asked.seconds:g} s are more than its sizes.seconds, {settings.sizes.seconds}"
    if sum(load.size for load in wish.loads) > settings.sizes.load_mib * _MIB:
        return f"its files have more than sizes.load_mib, {settings.sizes.load_mib}"
    return ""
