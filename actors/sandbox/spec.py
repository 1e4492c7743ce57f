"""The part of the world that one run of a program may have, its limits, and its end; pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from pmagent.actors.sandbox.egress.rules import ContactRefused, rules
from pmagent.contracts.orchestra import NetContact, Program
from pmagent.events.errors import PmagentError

ARTIFACTS: Final = "/artifacts"
"""Where the run's artifact folder lies inside; ``$ARTIFACTS`` names it."""

OWN_TMP: Final = "/tmp"  # noqa: S108  (inside; it is private and empty)
"""The private folder for temporary files inside. Asking to read or write it asks for what is there anyway."""

TASK: Final = f"{OWN_TMP}/task"
"""The task's private folder, in the private /tmp: it lies there before the start, with ``SandboxSpec.files``."""

INPUTS: Final = "/inputs"
"""Where ``SandboxSpec.inputs`` lies inside; ``$INPUTS`` names it."""

SEARCH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders of the system's programs: ``PATH`` inside, where no others were found."""

PLACES: Final = (".venv/bin", "$VIRTUAL_ENV/bin", "~/.cargo/bin", *SEARCH, "node_modules/.bin")
"""Where programs are looked for, as people write it; ``programs.places`` are the folders."""

IN_MEMORY: Final = (OWN_TMP, "/dev/shm", "/run")  # noqa: S108  (inside)
"""Folders inside that are the tool's alone, and lie in memory."""

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""System run-time folders, always visible and never writable."""

_RESERVED: Final = ("/proc", "/dev", "/sys", "/run", "/var/run", "/etc", "/boot", ARTIFACTS, INPUTS, *SYSTEM)
"""No spec reaches in here: what of it tools need is there anyway, the rest is the machine's."""

OWN_ENV: Final = frozenset(("PATH", "HOME", "TMPDIR", "LANG", "ARTIFACTS", "INPUTS", "PWD"))
"""Variables that say where things are inside: nobody sets them but the sandbox."""
PROXY_ENV: Final = frozenset((
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
))  # fmt: skip
"""Where programs look for their proxy: set under ``net: allow``, the last of each row to nothing."""
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PAGE: Final = 4096
_NAME_BYTES_MAX: Final = 255
"""NAME_MAX, of Linux."""
_PATH_MAX: Final = 4095
_PATH_BYTES_MAX: Final = 1024
_FILES_MAX: Final = 512
"""Each is handed over as an open file."""
_WORDS_BYTES_MAX: Final = 128 * 1024
"""Arguments and environment together; the kernel's own limit for one argument, and well below that for all."""


class SandboxRefused(PmagentError, exit_code=7):
    """The request must not be granted, or cannot be read; nothing was started. Trying again changes nothing."""


class SandboxUnavailable(PmagentError, exit_code=1):
    """This machine cannot build the sandbox; nothing was started, and nothing runs without one."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Resource limits of one run. The kernel enforces most of them for each process; their sum over all processes is
    sampled a few times a second, and a run that exceeds it is killed."""

    seconds: float = 300.0
    """Wall time of the whole run; then TERM."""
    grace_seconds: float = 5.0
    """From TERM to KILL."""
    memory_bytes: int = 4 * 2**30
    """Private memory that a process can write to (RLIMIT_DATA)."""
    address_bytes: int = 256 * 2**30
    """Address space of a process (RLIMIT_AS). WebAssembly reserves 10 GiB for each memory, and hardly uses it."""
    total_memory_bytes: int = 8 * 2**30
    """Memory of all processes together, what is shared counted for each; looked at."""
    processes: int = 64
    """Processes and threads of the run (RLIMIT_NPROC), those that build the sandbox among them."""
    file_bytes: int = 256 * 2**20
    """Largest file a process may write (RLIMIT_FSIZE)."""
    open_files: int = 256
    cpu_seconds: int = 300
    """Processor time of a process (RLIMIT_CPU)."""
    output_bytes: int = 2**20
    """Kept of stdout, and as much of stderr; what follows is read and dropped."""
    tail_bytes: int = 0
    """Of what follows, so many last bytes are kept too."""
    tmp_bytes: int = 64 * 2**20
    """Size of the private /tmp, and of /dev/shm."""
    tmp_entries: int = 100_000
    """Files and folders in memory; the kernel needs about a kilobyte for an empty one. Looked at."""
    artifact_bytes: int = 512 * 2**20
    """Disk space of the artifact folder; sampled."""
    artifact_entries: int = 10_000
    """Files and folders among the artifacts; looked at."""
    free_bytes: int = 256 * 2**20
    """Space that must stay free on each disk that the run writes, whoever takes it; sampled."""


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a program. Paths are absolute and without links; ``pmagent`` makes them so from the configuration."""

    argv: tuple[str, ...]
    """Program (a name to be found in ``SEARCH``, or an absolute path that is visible inside) and its arguments."""
    workdir: str = OWN_TMP
    """Where it starts: somewhere visible."""
    fs: Literal["read-only", "rw"] = "read-only"
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    """Writable under ``rw`` only; under ``read-only`` visible, and not writable."""
    shows: tuple[str, ...] = ()
    """Folders of programs, and of a worktree's repository: visible, and never writable."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links outside of what is visible, by which programs in ``shows`` are reached: path and target."""
    search: tuple[str, ...] = SEARCH
    """``PATH`` inside."""
    net: Literal["deny", "allow"] = "deny"
    """``allow``: to ``allow_domains`` by the filtering proxy, and nowhere else."""
    allow_domains: tuple[str, ...] = ()
    """Exact host names."""
    trace: tuple[str, str] | None = None
    """Header and value that every plain HTTP request through the proxy gets."""
    env: dict[str, str] = {}
    artifacts: str
    """A folder of the host for this run alone, made by the caller; the only one always writable."""
    files: tuple[tuple[str, bytes], ...] = ()
    """Path below ``TASK``, and content: written before it starts, its own to change."""
    inputs: str = ""
    """A folder of the host that it reads at ``INPUTS``; "": none."""
    hide: tuple[str, ...] = ()
    """Paths in what it may read that it sees as empty and cannot fill."""
    protect: tuple[str, ...] = ()
    """Paths that are never writable, also where they do not exist: the surfaces and the policy of the workspace."""
    etc: tuple[tuple[str, bytes], ...] = ()
    """Path below /etc, and content: files that it reads there and cannot change."""
    homes: tuple[str, ...] = ()
    """Folders that are its own, with whatever names: it writes them, and nothing in them is guarded."""
    over: tuple[tuple[str, str, bool], ...] = ()
    """Folders of the host that lie elsewhere inside, over what is there: the path in a writable folder, the folder, and
    whether it is writable."""
    unix: bool = False
    """Whether it may use unix sockets: those that it sees, and its own."""
    terminal: bool = False
    """Whether its output is a terminal, which becomes its own: the one that controls it, and its input."""
    packages: tuple[str, ...] = ()
    """Folders that hold programs of later tasks, never writable either. One that is a link cannot be kept from being
    replaced; where it leads stays as it is."""
    limits: Limits = Limits()

    @property
    def writable(self) -> tuple[str, ...]:
        """Paths of the host that it may write besides the artifacts."""
        return tuple(sorted({*self.allow_write} - {OWN_TMP})) if self.fs == "rw" else ()

    @property
    def visible(self) -> tuple[str, ...]:
        """Paths of the host that it sees."""
        return (*self.allow_read, *self.allow_write, *self.homes, *self.shows)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. Exactly one of ``exit_code`` and ``signal`` is set."""

    exit_code: int | None
    signal: int | None
    """The signal that ended the program. bubblewrap tells it as 128 + n, so a program that itself exits with such a
    code looks the same; both are failures. 129 stays an exit code: git says it for wrong usage, nobody hangs up."""
    timed_out: bool
    exceeded: str
    """The limit whose excess it was killed for, in words; "": it was not."""
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    """How much was written; more than was kept when it was cut."""
    seconds: float
    planted: tuple[str, ...]
    """Protected names, and links that lead out, that appeared in a writable folder during the run, and where they were
    moved to. Not empty: a security violation."""
    unenforced: tuple[str, ...]
    """Limits that this machine could not set, in words."""
    contacts: tuple[NetContact, ...] = ()
    """The requests to the proxy, in order."""
    contacts_dropped: int = 0
    """How many more there were."""

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


def with_programs(spec: SandboxSpec, programs: Sequence[Program], git: str = "") -> SandboxSpec:
    """The spec with what these programs need, and the repository at ``git`` ("": none), to be read. The workspace's
    ``node_modules/.bin`` comes last in ``PATH``, as where programs are looked for."""
    paths = {program.name: program.path for program in programs}
    folders = [folder for folder in dict.fromkeys(map(posixpath.dirname, paths.values())) if folder not in SEARCH]
    last = [folder for folder in folders if folder.endswith("/.bin")]
    shows = {folder for program in programs for folder in program.shows}
    homes = [folder for folder in shows if folder.endswith("/.rustup")]
    return msgspec.structs.replace(
        spec,
        argv=(paths.get(spec.argv[0], spec.argv[0]), *spec.argv[1:]),
        shows=tuple(sorted({*spec.shows, *shows, git} - {"", *spec.allow_read})),
        links=tuple(sorted({link for program in programs for link in program.links.items()})),
        search=(*(folder for folder in folders if folder not in last), *SEARCH, *last),
        hide=tuple(dict.fromkeys((*spec.hide, *(path for program in programs for path in program.hides)))),
        env={**({"RUSTUP_HOME": homes[0]} if homes else {}), **spec.env},  # HOME is another one inside
    )


def check(spec: SandboxSpec) -> None:
    """Raises SandboxRefused for what is never granted, whatever the machine; looks at nothing."""
    _check_network(spec)
    _check_words(spec)
    named = (spec.workdir, spec.artifacts, *((spec.inputs,) if spec.inputs else ()))
    for path in (*named, *spec.visible, *spec.hide, *spec.protect, *spec.packages, *(path for path, _ in spec.links),
                 *(path for inside, folder, _ in spec.over for path in (inside, folder))):  # fmt: skip
        normal = posixpath.normpath(path) == path and not path.startswith("//")
        if not path.startswith("/") or not normal or "\0" in path or _length(path) > _PATH_MAX:
            raise SandboxRefused(f"{path!r} is no absolute, normal path", "write it from / on, without . and ..")
    for path in spec.visible:
        if path == "/" or any(within(path, reserved) or within(reserved, path) for reserved in _RESERVED):
            raise SandboxRefused(f"{path} is the system's and is not shown to tools", "name a folder of your own")
        if within(path, TASK):
            raise SandboxRefused(f"{path} lies where the task's own folder is", "move it elsewhere")
    for path in (*spec.visible, spec.workdir):
        if any(within(path, hidden) for hidden in spec.hide):
            raise SandboxRefused(f"{path} is hidden from tools", "name another folder")
    _check_files(spec.files, spec.limits.tmp_bytes)
    _check_files(spec.etc, spec.limits.tmp_bytes)
    _check_limits(spec.limits)


def _check_network(spec: SandboxSpec) -> None:
    if spec.net == "allow":
        try:
            rules(spec.allow_domains, spec.trace)
        except ContactRefused as refusal:
            raise SandboxRefused(f"net: allow: {refusal.message}", refusal.hint) from refusal


def _check_words(spec: SandboxSpec) -> None:
    words = [*spec.argv, *spec.env, *spec.env.values()]
    if not spec.argv or not spec.argv[0]:
        raise SandboxRefused("no program is named", "give the tool's name first")
    if any("\0" in word for word in words):
        raise SandboxRefused("an argument or variable holds a NUL character", "remove it: no program can be given one")
    if sum(_length(word) + 1 for word in words) > _WORDS_BYTES_MAX:
        raise SandboxRefused(
            f"arguments and environment are longer than {_WORDS_BYTES_MAX} bytes", "give the content as a file"
        )
    for name in spec.env:
        if not _ENV_NAME.match(name) or name in kept_env(spec.net):
            raise SandboxRefused(f"{name!r} cannot be set for a tool", "choose another name of letters, digits and _")


def kept_env(net: str) -> frozenset[str]:
    """The variables that a tool cannot be given, with this network."""
    return OWN_ENV | PROXY_ENV if net == "allow" else OWN_ENV


def _length(text: str) -> int:
    """In bytes, as a program is given it."""
    try:
        return len(text.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        raise SandboxRefused("an argument, variable or path holds half a character", "write it as UTF-8") from None


def _check_files(files: tuple[tuple[str, bytes], ...], room: int) -> None:
    if len(files) > _FILES_MAX:
        raise SandboxRefused(f"{len(files)} files are too many", f"give at most {_FILES_MAX}, or an archive")
    folders = {"/".join(parts[:end]) for parts in (path.split("/") for path, _ in files) for end in range(len(parts))}
    seen: set[str] = set()
    for path, _ in files:
        parts = path.split("/")
        if "\0" in path or not set(parts).isdisjoint(("", ".", "..")):
            raise SandboxRefused(f"file {path!r} is no path below the task's folder", "write it without . and ..")
        if _length(path) > _PATH_BYTES_MAX or any(_length(part) > _NAME_BYTES_MAX for part in parts):
            raise SandboxRefused(f"file {path[:80]!r} has a path too long for a file system", "shorten it")
        if path in seen or path in folders:
            raise SandboxRefused(f"file {path!r} is given twice, or as a folder too", "keep one of the two")
        seen.add(path)
    size = sum(-(-len(content) // _PAGE) * _PAGE for _, content in files)
    if size > room:
        raise SandboxRefused(f"the files take {size} bytes, and /tmp has {room}", "raise tmp_bytes, or give less")


def _check_limits(limits: Limits) -> None:
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if not 0 <= value < 2**62 or not (value or name == "tail_bytes"):
            raise SandboxRefused(f"limit {name} is {value}", "limits are positive numbers")
