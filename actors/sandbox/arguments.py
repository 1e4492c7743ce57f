"""From a spec to the exact arguments of bubblewrap; pure.

The root inside is built from nothing: system run-time folders, what was asked for, a private /tmp, and nothing else.
``HostFacts`` describe the host; anything that must be handed over as an open file (bubblewrap takes descriptors)
stands in the arguments as ``Content`` or ``HostPath``, for the runner to open. So the same spec on the same host gives
the same arguments, and they can be read, compared and tested without a process.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import Final

import msgspec

from pmagent.actors.sandbox import seccomp
from pmagent.actors.sandbox.egress.rules import PORT
from pmagent.actors.sandbox.protected import is_named
from pmagent.actors.sandbox.spec import (
    ARTIFACTS,
    INPUTS,
    OWN_TMP,
    PROXY_ENV,
    TASK,
    SandboxRefused,
    SandboxSpec,
    check,
    within,
)

REPOSITORY: Final = "HEAD"
"""The file by which git knows a repository, see ``is_repository``."""

MASKED: Final = (".git", ".pmagent", "orchestra.config.yaml")
"""Of these, the ones that a writable folder gets a read-only stand-in for where it lacks them."""

SETPRIV: Final = "/usr/bin/setpriv"
SETSID: Final = "/usr/bin/setsid"
SHELL: Final = "/bin/sh"
HELPERS: Final = (SETPRIV, SHELL)
"""Of the system: they run inside, before the program, and become it."""

PROXY: Final = f"http://127.0.0.1:{PORT}"
"""The proxy as it is seen inside."""

_LIMITS: Final = (
    'ulimit -d "$1" && ulimit -v "$2" && { ulimit -p "$3" || ulimit -u "$3"; } 2>/dev/null && ulimit -f "$4" && '
    'ulimit -n "$5" && ulimit -S -t "$6" && ulimit -H -t "$7"'
)
"""Hard limits, in the shell's units (``_limited``). Some shells call that of processes ``-u``."""

_LANG: Final = "LANG"
_CARRIED: Final = "PROGRAM_ENV_"
_SHELLS_OWN: Final = frozenset((
    "BASHOPTS", "BASH_VERSINFO", "EUID", "FUNCNAME", "GROUPS", "OPTIND", "PPID", "SHELLOPTS", "UID", "_",
))  # fmt: skip
"""Variables that some shells do not let be set to any value."""
_KIB: Final = 1024
_BLOCK: Final = 512
_INSIDE_ID: Final = 1000
_SMALL: Final = str(2**20)
_MASK_BYTES: Final = "4096"


class Content(msgspec.Struct, frozen=True):
    """Bytes to be handed over as an open file."""

    data: bytes


class HostPath(msgspec.Struct, frozen=True):
    """A path of the host to be handed over opened (O_PATH, no link followed): what was looked at is what is mounted."""

    path: str


Argument = str | Content | HostPath


class Guarded(msgspec.Struct, frozen=True, order=True):
    """A protected path in a writable folder; ``missing``: it does not exist, and gets a stand-in."""

    path: str
    missing: bool


class Hidden(msgspec.Struct, frozen=True, order=True):
    """A path that the tool sees as empty: as a folder without entries, or as a file without content."""

    path: str
    folder: bool


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the machine on which the arguments depend."""

    machine: str
    """``uname -m``, one of ``syscalls.MACHINES``."""
    privileged: bool
    """Whether bubblewrap starts as root. Then it needs no user namespace, and the tool gets the ids below; a user
    namespace would leave the tool root outside of it, for whom the limit on processes does not count."""
    uid: int
    gid: int
    """The tool's ids, never 0: as the host sees them."""
    program: str
    """The program's absolute path inside."""
    system: tuple[tuple[str, str], ...]
    """System folders that exist: path -> target if it is a link, else ""."""
    etc: tuple[str, ...]
    """Of /etc, what exists of the little that tools need."""
    guarded: tuple[Guarded, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    idmapped: tuple[str, ...] = ()
    """Folders of root that the tool's ids are to own while it runs; ``idmap`` says how."""
    checked: SandboxSpec | None = None
    """The specification that has passed ``check`` already."""


class Plan(msgspec.Struct, frozen=True):
    """``options`` go to bubblewrap by ``--args``, not on its command line; ``command`` is what it runs."""

    options: tuple[Argument, ...]
    command: tuple[str, ...]


def is_repository(names: Collection[str]) -> bool:
    """Whether git takes a folder with these entries for a repository, whatever it is called, and obeys what its config
    says (git, setup.c, is_git_directory)."""
    return REPOSITORY in names and ("commondir" in names or ("objects" in names and "refs" in names))


def plan(spec: SandboxSpec, host: HostFacts) -> Plan:
    """The arguments. Raises SandboxRefused for what is never granted."""
    if host.checked is not spec:
        check(spec)
    for path in spec.allow_write:
        _check_writable(path, spec.protect)
    if host.uid <= 0 or host.gid <= 0:
        raise SandboxRefused("a tool is never run as root", "start pmagent as an ordinary user")
    options = (
        *_namespaces(host),
        *_environment(spec),
        *_system(spec, host),
        *_task(spec, host),
        *_folders(spec, host),
        # Last, for what is mounted below them had to be made first. Both are in memory, which has no other bound.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", spec.workdir),
        *("--seccomp", Content(seccomp.program(host.machine, unix_socket=spec.unix))),
    )
    return Plan(options, (*_unprivileged(host), *_limited(spec), host.program, *spec.argv[1:]))


def _check_writable(path: str, protect: tuple[str, ...]) -> None:
    if is_named(path) or any(within(path, kept) for kept in protect):
        raise SandboxRefused(f"{path} is protected and never writable", "take it out of allow_write")


def _namespaces(host: HostFacts) -> tuple[Argument, ...]:
    own = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net")
    session = ("--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
    if host.privileged:  # what setpriv needs to become somebody else; it gives them up
        return (*own, *session, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    ids = ("--uid", str(_INSIDE_ID), "--gid", str(_INSIDE_ID))
    return ("--unshare-user", "--disable-userns", *ids, *own, *session)


def _environment(spec: SandboxSpec) -> tuple[Argument, ...]:
    own = {"PATH": ":".join(spec.search), "HOME": OWN_TMP, "TMPDIR": OWN_TMP, "ARTIFACTS": ARTIFACTS}
    if spec.inputs:
        own["INPUTS"] = INPUTS
    if spec.net == "allow":
        own |= {name: "" if name.lower() == "no_proxy" else PROXY for name in sorted(PROXY_ENV)}
    options: list[Argument] = ["--clearenv"]
    for name, value in own.items():
        if name not in spec.env:
            options += ["--setenv", name, value]
    carried = _carried(spec)
    for name, value in sorted(spec.env.items()):
        if name != _LANG:
            options += ["--setenv", carried.get(name, name), value]
    return tuple(options)


def _carried(spec: SandboxSpec) -> dict[str, str]:
    """The program's own variables, under names that no loader or shell obeys: what runs before it, as root with
    capabilities until setpriv gives them up, must not load what ``LD_PRELOAD`` names. Shorter names first, so that the
    gate sets none that carries another still."""
    names = sorted(spec.env.keys() - {_LANG} - _SHELLS_OWN, key=lambda name: (len(name), name))
    return {name: _CARRIED + name for name in names}


def gate(spec: SandboxSpec) -> tuple[str, ...]:
    """Runs before the program: sets its limits, and becomes it when a line comes from outside; without one, or where a
    limit cannot be set, it ends. It passes the program's words, which follow the limits and the program's ``LANG``, on
    as they are: the shell reads none of them. It alone sets the program's variables. What runs before it has no
    ``LANG``: to load a locale would cost it more than its work."""
    own = "".join(f' && export {name}="${other}" && unset {other}' for name, other in _carried(spec).items())
    become = f'exec {SETSID} --ctty --wait "$@" <&1' if spec.terminal else 'exec "$@" </dev/null'
    return (SHELL, "-c", f'{_LIMITS} && read -r go && export LANG="$8" && shift 8{own} && {become}', "gate")


def _system(spec: SandboxSpec, host: HostFacts) -> tuple[Argument, ...]:
    options: list[Argument] = []
    for path, target in host.system:
        options += ["--symlink", target, path] if target else ["--ro-bind", path, path]
    placed = (*host.etc, *(f"/etc/{path}" for path, _ in spec.etc))
    for folder in sorted({"/etc", *(parent for path in placed for parent in _parents(path))}):
        options += ["--perms", "0755", "--dir", folder]  # bubblewrap would make it, as root, for itself alone
    for path in host.etc:
        options += ["--ro-bind", path, path]
    uid, gid = (host.uid, host.gid) if host.privileged else (_INSIDE_ID, _INSIDE_ID)
    stubs = {
        "/etc/passwd": f"tool:x:{uid}:{gid}::{OWN_TMP}:/usr/sbin/nologin\n",
        "/etc/group": f"tool:x:{gid}:\n",
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
        # No service of the host is reachable inside: to look for one takes time, and finds none.
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    }
    files = {path: text.encode() for path, text in stubs.items()} | {f"/etc/{path}": data for path, data in spec.etc}
    for path, data in files.items():
        options += ["--perms", "0444", "--file", Content(data), path]
    size = str(spec.limits.tmp_bytes)
    # A few sysctls are writable by anybody's bits, and leave it to the kernel to look at rights.
    options += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    for path, bound in (("/dev/shm", size), (OWN_TMP, size), ("/run", _SMALL)):  # noqa: S108  (inside)
        options += ["--perms", "1777", "--size", bound, "--tmpfs", path]
    return tuple(options)


def _task(spec: SandboxSpec, host: HostFacts) -> tuple[Argument, ...]:
    """The task's own folder with its files. As root bubblewrap leaves them root's; so anybody inside may write them,
    and inside there is nobody but the tool."""
    folder, file = ("0777", "0666") if host.privileged else ("0755", "0644")
    options: list[Argument] = ["--perms", folder, "--dir", TASK]
    made: set[str] = set()
    for name, content in spec.files:
        path = f"{TASK}/{name}"
        for parent in _parents(path):
            if within(parent, TASK) and parent not in {TASK, *made}:
                made.add(parent)
                options += ["--perms", folder, "--dir", parent]
        options += ["--perms", file, "--file", Content(content), path]
    return tuple(options)


def _folders(spec: SandboxSpec, host: HostFacts) -> tuple[Argument, ...]:
    """Mounts of the host's folders, parents before what lies in them, so that the more exact one holds."""
    writable = spec.writable
    readable = [path for path in spec.visible if path != OWN_TMP]
    mounts: dict[str, tuple[Argument, ...]] = {path: ("--ro-bind-fd", HostPath(path), path) for path in readable}
    links = (link for link in spec.links if not any(within(link[0], path) for path in readable))
    mounts |= {path: ("--symlink", target, path) for path, target in links}
    mounts |= {path: ("--bind-fd", HostPath(path), path) for path in (*writable, *spec.homes)}
    kept = [*(guarded.path for guarded in host.guarded), *(hidden.path for hidden in host.hidden)]
    for path in kept:
        for folder in _between(path, writable):
            # A folder on the way that is a mount of its own cannot be renamed and replaced.
            mounts.setdefault(folder, ("--bind-fd", HostPath(folder), folder))
    mounts |= {guarded.path: _guard(guarded) for guarded in host.guarded}
    mounts |= {hidden.path: _hide(hidden) for hidden in host.hidden}
    for inside, folder, rw in spec.over:
        mounts[inside] = ("--bind-fd" if rw else "--ro-bind-fd", HostPath(folder), inside)
    options: list[Argument] = []
    made: set[str] = set()
    for path in sorted(mounts, key=lambda path: path.split("/")):
        for parent in _parents(path):
            if parent != OWN_TMP and parent not in made and not any(within(parent, mount) for mount in mounts):
                made.add(parent)  # as above
                options += ["--perms", "0755", "--dir", parent]
        options += mounts[path]
    if spec.inputs:
        options += ["--ro-bind-fd", HostPath(spec.inputs), INPUTS]
    return (*options, "--bind-fd", HostPath(spec.artifacts), ARTIFACTS)


def _parents(path: str) -> list[str]:
    """The folders above ``path``, without the root, from there on."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def _guard(guarded: Guarded) -> tuple[Argument, ...]:
    path = guarded.path
    return _empty(path) if guarded.missing else ("--ro-bind-fd", HostPath(path), path)


def _hide(hidden: Hidden) -> tuple[Argument, ...]:
    return _empty(hidden.path) if hidden.folder else ("--perms", "0444", "--ro-bind-data", Content(b""), hidden.path)


def _empty(path: str) -> tuple[Argument, ...]:
    return ("--perms", "0555", "--size", _MASK_BYTES, "--tmpfs", path, "--remount-ro", path)


def _between(path: str, writable: tuple[str, ...]) -> list[str]:
    """The folders above ``path`` up to, without, the writable folder that it lies in."""
    folders: list[str] = []
    while (path := posixpath.dirname(path)) not in writable and any(within(path, root) for root in writable):
        folders.append(path)
    return folders


def _unprivileged(host: HostFacts) -> tuple[str, ...]:
    if not host.privileged:
        return ()
    ids = (f"--reuid={host.uid}", f"--regid={host.gid}", "--clear-groups")
    return (SETPRIV, *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")


def _limited(spec: SandboxSpec) -> tuple[str, ...]:
    limits = spec.limits
    values = (
        limits.memory_bytes // _KIB, limits.address_bytes // _KIB, limits.processes, limits.file_bytes // _BLOCK,
        limits.open_files, limits.cpu_seconds, limits.cpu_seconds + 1,  # XCPU, a second later KILL
    )  # fmt: skip
    return (*gate(spec), *map(str, values), spec.env.get(_LANG, "C.UTF-8"))
