"""What a tool may have of the world: the wishes for one run of a program, their limits, and how it ended; pure."""

from __future__ import annotations

import posixpath
import re
from typing import Final, Literal

import msgspec

from events.errors import PmagentError

ARTIFACTS: Final = "/artifacts"
"""Where the run's artifact folder lies inside; ``$ARTIFACTS`` names it."""

OWN_TMP: Final = "/tmp"  # noqa: S108  (inside; it is private and empty)
"""The private folder for temporary files inside. Asking to read or write it asks for what is there anyway."""

SEARCH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where a bare program name is looked for: ``PATH`` inside."""

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""System run-time folders, always visible and never writable."""

_RESERVED: Final = ("/proc", "/dev", "/sys", "/run", "/var/run", "/etc", "/boot", ARTIFACTS, *SYSTEM)
"""No wish reaches in here: what of it tools need is there anyway, the rest is the machine's."""

_OWN_ENV: Final = frozenset(("PATH", "HOME", "TMPDIR", "LANG", "ARTIFACTS", "PWD"))
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS_BYTES_MAX: Final = 128 * 1024
"""Arguments and environment together; the kernel's own limit for one argument, and well below that for all."""


class SandboxRefused(PmagentError):
    """The wishes may not be granted, or cannot be read; nothing was started. Trying again changes nothing."""

    exit_code = 7


class SandboxUnavailable(PmagentError):
    """This machine cannot build the sandbox; nothing was started, and nothing runs without one."""

    exit_code = 1


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use. Limits on memory, files and processor time hold for each process, the others for all."""

    seconds: float = 300.0
    """Wall time of the whole run; then TERM."""
    grace_seconds: float = 5.0
    """From TERM to KILL."""
    memory_bytes: int = 4 * 2**30
    """Address space of a process (RLIMIT_AS)."""
    processes: int = 64
    """Processes and threads of the run (RLIMIT_NPROC), those that build the sandbox among them."""
    file_bytes: int = 256 * 2**20
    """Largest file a process may write (RLIMIT_FSIZE)."""
    open_files: int = 256
    cpu_seconds: int = 300
    """Processor time of a process (RLIMIT_CPU)."""
    output_bytes: int = 2**20
    """Kept of stdout, and as much of stderr; what follows is read and dropped."""
    tmp_bytes: int = 64 * 2**20
    """Size of the private /tmp, and of /dev/shm."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a program. Paths are absolute and without links; ``pmagent`` makes them so from the configuration."""

    argv: tuple[str, ...]
    """Program (a name to be found in ``SEARCH``, or an absolute path that is visible inside) and its arguments."""
    workdir: str = OWN_TMP
    """Where it starts: somewhere visible."""
    fs: Literal["read-only", "rw"] = "read-only"
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    """Writable under ``rw`` only; under ``read-only`` visible, and not writable."""
    net: Literal["deny", "allow"] = "deny"
    env: dict[str, str] = {}
    artifacts: str
    """A folder of the host for this run alone, made by the caller; the only one always writable."""
    protect: tuple[str, ...] = ()
    """Paths that are never writable, also where they do not exist: the surfaces and the policy of the workspace."""
    limits: Limits = Limits()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. Exactly one of ``exit_code`` and ``signal`` is set."""

    exit_code: int | None
    signal: int | None
    """The signal that ended the program. bubblewrap tells it as 128 + n, so a program that itself exits with such a
    code looks the same; both are failures. 129 stays an exit code: git says it for wrong usage, nobody hangs up."""
    timed_out: bool
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    """How much was written; more than was kept when it was cut."""
    seconds: float
    planted: tuple[str, ...]
    """Protected names that appeared in a writable folder during the run, and where they were moved to. Not empty: a
    security violation."""
    unenforced: tuple[str, ...]
    """Limits that this machine could not set, in words."""

    @property
    def stdout_cut(self) -> bool:
        """Whether not all of stdout was kept."""
        return self.stdout_bytes > len(self.stdout)

    @property
    def stderr_cut(self) -> bool:
        """Whether not all of stderr was kept."""
        return self.stderr_bytes > len(self.stderr)


def within(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it, part by part: /tmpevil does not lie in /tmp."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def check(wishes: Wishes) -> None:
    """Raises SandboxRefused for wishes that are never granted, whatever the machine; looks at nothing."""
    if wishes.net != "deny":
        raise SandboxRefused(
            "net: allow is refused: there is no filtering proxy yet, and nothing leaves the sandbox without one",
            "say net: deny for this task",
        )
    words = [*wishes.argv, *wishes.env, *wishes.env.values()]
    if not wishes.argv or not wishes.argv[0]:
        raise SandboxRefused("no program is named", "give the tool's name first")
    if any("\0" in word for word in words):
        raise SandboxRefused("an argument or variable holds a NUL character", "remove it: no program can be given one")
    if sum(len(word.encode(errors="surrogateescape")) + 1 for word in words) > _WORDS_BYTES_MAX:
        raise SandboxRefused(
            f"arguments and environment are longer than {_WORDS_BYTES_MAX} bytes", "give the content as a file"
        )
    for name in wishes.env:
        if not _ENV_NAME.match(name) or name in _OWN_ENV:
            raise SandboxRefused(f"{name!r} cannot be set for a tool", "choose another name of letters, digits and _")
    for path in (wishes.workdir, wishes.artifacts, *wishes.allow_read, *wishes.allow_write, *wishes.protect):
        if not path.startswith("/") or posixpath.normpath(path) != path or "\0" in path or path.startswith("//"):
            raise SandboxRefused(f"{path!r} is no absolute, normal path", "write it from / on, without . and ..")
    for path in (*wishes.allow_read, *wishes.allow_write):
        if path == "/" or any(within(path, reserved) or within(reserved, path) for reserved in _RESERVED):
            raise SandboxRefused(f"{path} is the system's and is not shown to tools", "name a folder of your own")
    _check_limits(wishes.limits)


def _check_limits(limits: Limits) -> None:
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if not 0 < value < 2**62:
            raise SandboxRefused(f"limit {name} is {value}", "limits are positive numbers")
