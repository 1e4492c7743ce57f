"""Finds programs where people have them, and what a sandbox must show so that they run; blocking.

A program's own folder may be shown without being listed in ``allow_read`` only if it is one of these: a virtual
environment (the workspace's ``.venv``, or one that the person had activated), the workspace's ``node_modules``, or an
interpreter or toolchain that a version manager installed in this user's home. A link that leads anywhere else shows
nothing. So a repository cannot choose which folders of this user become visible.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from pmagent.actors.sandbox.arguments import is_repository
from pmagent.actors.sandbox.protected import CREDENTIALS, PACKAGES, PROTECTED, names
from pmagent.actors.sandbox.spec import OWN_TMP, SEARCH, SYSTEM, SandboxRefused, within
from pmagent.contracts.orchestra import SEARCH_MAX, Program

LINKS_MAX: Final = 40
"""Links on the way to one program; more is a circle (Linux has the same limit)."""
HIDES_MAX: Final = 200
LOOK_SECONDS: Final = 10.0
"""So long what was found to be hidden in a folder counts, for attempts that follow one another; the longest attempt
takes longer."""
_LOOKED_MAX: Final = 64
VENV: Final = ".venv"
MODULES: Final = "node_modules"
_CONFIG: Final = "pyvenv.cfg"
_PATH_CHARS: Final = 1_024

_INSTALLED: Final = (
    (".local/share/uv/python", 1), (".local/share/uv/tools", 1), (".local/share/pipx/venvs", 1),
    (".pyenv/versions", 1), (".nvm/versions/node", 1), (".cargo/bin", 0), (".rustup", 0),
)  # fmt: skip
"""Folders of this user's home below which version managers install; so many names below each is one program's own."""

_OTHER_NAMES: Final[Mapping[str, str]] = {"python": "python3"}
"""A name under which a system has the program, where it has none under the name asked for."""


def found(
    wanted: Iterable[str], workspace: str, search: Sequence[str] = (), readable: Sequence[str] = ()
) -> list[Program]:
    """Those of the programs ``wanted`` that there are, in ``places(workspace, search)``, the first place first.
    ``readable``: what the sandbox shows anyway. Raises OSError."""
    root = os.path.realpath(workspace)
    search = [folder for folder in search if _is_venv(os.path.dirname(folder)) or _installed(folder)]
    hides: dict[str, list[str]] = {}
    programs = []
    for name in wanted:
        for path in _called(name, places(root, search)):
            with suppress(SandboxRefused):  # its interpreter's links are a circle, or unnameable: it cannot run
                programs.append(_described(name, path, root, search, _of_host(readable), hides))
                break
    return programs


def described(path: str, workspace: str, search: Sequence[str] = (), readable: Sequence[str] = ()) -> Program:
    """The program at ``path`` (absolute), wherever it lies, under its own name. Raises SandboxRefused, OSError."""
    return _described(os.path.basename(path), path, os.path.realpath(workspace), search, _of_host(readable), {})


def places(root: str, search: Sequence[str] = ()) -> list[str]:
    """The folders in which programs are looked for: a virtual environment as if it were activated; the workspace's
    ``node_modules`` last, because tasks may be allowed to write there, and must not shadow other programs."""
    return [f"{root}/{VENV}/bin", *search, f"{_home()}/.cargo/bin", *SEARCH, f"{root}/{MODULES}/.bin"]


def searched(environ: Mapping[str, str]) -> list[str]:
    """The places that this environment adds: the activated virtual environment, and folders of installed
    interpreters on its PATH."""
    active = environ.get("VIRTUAL_ENV", "")
    on_path = (entry for entry in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))
    chosen = [path for path in map(os.path.realpath, on_path) if _installed(path) and os.path.isdir(path)]
    venv = [f"{os.path.realpath(active)}/bin"] if os.path.isabs(active) and _is_venv(active) else []
    return [path for path in dict.fromkeys((*venv, *chosen)) if _is_plain(path)][:SEARCH_MAX]


def check_unchanged(program: Program, readable: Sequence[str]) -> None:
    """Look whether the program is still the one that was found, and can be shown. Raises SandboxRefused."""
    real, links = followed(program.path)
    if real != program.real or any(program.links.get(path, target) != target for path, target in links.items()):
        raise SandboxRefused(
            f"{program.path} led to {program.real} when the run was requested, and leads to {real} now",
            "request the run again",
        )
    for folder in program.lacks:
        if not any(within(folder, shown) for shown in _of_host(readable)):
            raise SandboxRefused(f"{program.path} needs {folder}, which the sandbox does not show", add_line(folder))


def hidden_anew(program: Program, seconds: float = LOOK_SECONDS) -> Program:
    """The program, with the files to hide that were made in its folders since it was found; a folder that was looked
    through less than ``seconds`` ago is not looked through again. Raises SandboxRefused."""
    hides = set(program.hides)
    for folder in program.shows:
        looked, found = _looked.get(folder, (-seconds, []))
        if time.monotonic() - looked >= seconds:
            found = _withheld(folder)
            _looked[folder] = (time.monotonic(), found)
            while len(_looked) > _LOOKED_MAX:
                _looked.pop(next(iter(_looked)), None)
        hides.update(found)
    return msgspec.structs.replace(program, hides=sorted(hides))


_looked: Final[dict[str, tuple[float, list[str]]]] = {}
"""Folders that were looked through last: when, and what is to be hidden there."""


def add_line(folder: str) -> str:
    """The one line that lets tasks read ``folder``. None is offered for the home folder, nor for one where credentials
    lie: a repository, or a task, may have named it so that somebody adds it."""
    if within(_home(), folder) or not {*folder.lower().split("/")}.isdisjoint(PROTECTED | CREDENTIALS):
        return f"install the program elsewhere: {folder} may hold credentials"
    return f'add "{folder}" to security.fs.allow_read in orchestra.config.yaml'


def lacking(words: Iterable[str], folder: str, shown: Sequence[str]) -> str:
    """Advice when a program was not found inside, or could not run: the first of ``words`` that names a file from
    ``folder`` on which exists here and leads to a place that is not ``shown``; "" where none does."""
    for word in words:
        path = os.path.normpath(os.path.join(folder, word)) if word and "\0" not in word else ""
        if len(path) > 1 and os.path.isfile(path) and not _is_system(path):
            try:
                real, _ = followed(path)
            except SandboxRefused:
                continue
            if not any(within(real, one) for one in (*_of_host(shown), *SYSTEM)):
                return add_line(_installed(real) or _prefix(real))
    return ""


def git_folder(root: str) -> str:
    """The folder of the repository of which ``root`` is a worktree; "" where it is none, or that repository does not
    know it: a ``.git`` file alone, which an archive may hold, makes no other repository visible. Nor does one in which
    worktrees lie, as in some bare repositories: their files would be visible, too."""
    own = f"{root}/.git"
    admin = os.path.realpath(_pointer(own, b"gitdir:", root) or root)
    common = os.path.dirname(os.path.dirname(admin))
    if within(admin, root) or os.path.realpath(_pointer(f"{admin}/commondir", b"", admin) or "/") != common:
        return ""
    if os.path.realpath(_pointer(f"{admin}/gitdir", b"", admin) or "/") != os.path.realpath(own):
        return ""
    if not _is_plain(common) or not is_repository(os.listdir(common)):
        return ""
    known = (f"{common}/worktrees/{name}" for name in os.listdir(f"{common}/worktrees"))
    trees = (os.path.realpath(os.path.dirname(_pointer(f"{one}/gitdir", b"", one) or root)) for one in known)
    return "" if any(within(tree, common) for tree in (root, *trees)) else common


def followed(path: str) -> tuple[str, dict[str, str]]:
    """The file that ``path`` (absolute) leads to, and each link on the way with its target. Raises SandboxRefused for a
    circle, and for a target that cannot be recorded as text."""
    links: dict[str, str] = {}
    here, rest, followings = "", path.split("/")[1:], 0
    while rest:
        name, *rest = rest
        if name in ("", "."):
            continue
        step = os.path.dirname(here) if name == ".." else f"{here.rstrip('/')}/{name}"
        if not os.path.islink(step):
            here = step
            continue
        links[step] = target = os.readlink(step)
        followings += 1  # also of a link that was followed before: a circle may consist of one
        if followings > LINKS_MAX or len(rest) > _PATH_CHARS:
            raise SandboxRefused(f"{path} leads through more than {LINKS_MAX} links", "find out what made them")
        if not _is_plain(target):
            raise SandboxRefused(f"{path} leads through a link to an unprintable or overlong name", "rename it")
        rest = [*target.split("/"), *rest]
        here = "" if target.startswith("/") else here
    return here or "/", links


def _described(
    name: str, path: str, root: str, search: Sequence[str], readable: Sequence[str], hides: dict[str, list[str]]
) -> Program:
    """``hides`` remembers the folders that have been looked through."""
    real, links = followed(path)
    needed = {real}
    home = os.path.dirname(os.path.dirname(path))
    if _is_venv(home):
        python, more = followed(f"{home}/bin/python")
        base, others = followed(_base(home) or "/usr/bin")
        needed |= {python, f"{base}/python", f"{os.path.realpath(home)}/{_CONFIG}"}
        links |= more | others
    if _is_rustup(real):
        needed.add(f"{_home()}/.rustup/settings.toml")
    venvs = [os.path.dirname(folder) for folder in search if _is_venv(os.path.dirname(folder))]
    own = [f"{root}/{VENV}", f"{root}/{MODULES}", *venvs]
    shows, lacks = set[str](), set[str]()
    for file in sorted({*needed, path} if _is_plain(path) else needed):
        if _is_system(file) or any(within(file, shown) for shown in readable):
            continue
        folder = next((one for one in own if within(file, one)), "") or _installed(file)
        narrow = folder and not within(_home(), folder)  # an environment can be the whole home folder
        if narrow and os.path.realpath(folder) == folder and _is_guardable(folder, hides):
            shows.add(folder)
        elif not any(within(file, link) for link in links):
            lacks.add(_prefix(file))
    seen = (*SYSTEM, "/etc", *readable, *shows)
    return Program(
        name=name, path=path, real=real,
        links={link: target for link, target in sorted(links.items()) if not any(within(link, one) for one in seen)},
        shows=sorted(shows), hides=sorted({one for folder in shows for one in hides[folder]}), lacks=sorted(lacks),
    )


def _called(name: str, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for known in filter(None, (name, _OTHER_NAMES.get(name, ""))):
            path = f"{folder}/{known}"
            if _is_plain(path) and os.path.isfile(path) and os.access(path, os.X_OK):
                yield path


def _is_guardable(folder: str, hides: dict[str, list[str]]) -> bool:
    """Whether all that must be hidden in ``folder`` can be; ``hides`` gets it."""
    try:
        if folder not in hides:
            hides[folder] = _withheld(folder)
    except SandboxRefused:
        return False
    return True


def _prefix(file: str) -> str:
    """The folder to show for a program that nobody knows: the one that has its ``bin``, unless that is too much."""
    folder = os.path.dirname(file)
    above = os.path.dirname(folder)
    return above if os.path.basename(folder) == "bin" and not within(_home(), above) else folder


def _withheld(folder: str) -> list[str]:
    """The paths in ``folder`` that the sandbox shows as empty: protected names, and names of files that hold
    credentials. Raises SandboxRefused where there are too many, where a name cannot be recorded, or where a folder
    cannot be looked through."""
    hidden: set[str] = set()
    pending = [(folder, False)]
    while pending:
        here, packaged = pending.pop()
        kept = names(packaged=packaged)
        try:
            entries = list(os.scandir(here))
        except OSError as error:
            raise SandboxRefused(f"{here} cannot be looked through ({error.strerror})", "mend it") from error
        for entry in entries:
            name = entry.name.lower()
            if entry.is_dir(follow_symlinks=False):
                if name in kept or (name in CREDENTIALS and not packaged):
                    hidden.add(entry.path)
                else:
                    pending.append((entry.path, packaged or entry.name in PACKAGES))
            elif name in names(packaged=False) or name in CREDENTIALS:
                real = os.path.realpath(entry.path)
                if within(real, folder):
                    hidden.add(real)
        if not all(map(_is_plain, hidden)):
            raise SandboxRefused(f"{folder} has a file to hide whose name is no text", "rename it")
        if len(hidden) > HIDES_MAX:
            raise SandboxRefused(f"{folder} has more than {HIDES_MAX} files to hide", "name it in allow_read")
    return sorted(hidden)


def _of_host(paths: Iterable[str]) -> list[str]:
    """Without the private /tmp, which shows nothing of the host's."""
    return [path for path in paths if path != OWN_TMP]


def _home() -> str:
    return os.path.realpath(os.path.expanduser("~"))


def _installed(path: str) -> str:
    """The folder of the installed interpreter or toolchain in which ``path`` lies; "" for none."""
    home = _home()
    for below, depth in _INSTALLED:
        base = f"{home}/{below}"
        if within(path, base):
            parts = path.removeprefix(base).strip("/").split("/")
            if depth == 0 or parts[0]:
                return "/".join([base, *parts[:depth]])
    return ""


def _is_system(path: str) -> bool:
    return any(within(path, folder) for folder in SYSTEM)


def _is_plain(path: str) -> bool:
    return path.isprintable() and len(path) <= _PATH_CHARS


def _is_venv(folder: str) -> bool:
    return os.path.isfile(f"{folder}/{_CONFIG}")


def _is_rustup(real: str) -> bool:
    """Whether the program is rustup under the name of a tool, which runs that of a toolchain."""
    rustup = f"{_home()}/.cargo/bin/rustup"
    return os.path.isfile(rustup) and os.path.samefile(real, rustup)


def _base(venv: str) -> str:
    """The folder of the interpreter from which a virtual environment was made, as that says."""
    for line in _start(f"{venv}/{_CONFIG}").splitlines():
        key, _, value = line.partition(b"=")
        if key.strip() == b"home" and value.strip().startswith(b"/"):
            base = os.path.normpath(os.fsdecode(value.strip()))
            return base if _is_plain(base) else ""
    return ""


def _pointer(file: str, prefix: bytes, base: str) -> str:
    """The path that a file of git's holds; "" where it holds none."""
    text = _start(file).strip()
    if not text.startswith(prefix) or b"\0" in text or not text.removeprefix(prefix).strip():
        return ""
    return os.path.normpath(os.path.join(base, os.fsdecode(text.removeprefix(prefix).strip())))


def _start(file: str) -> bytes:
    """The start of a regular file; nothing where there is none."""
    try:
        with open(file, "rb") as opened:
            return opened.read(_PATH_CHARS * 8)
    except OSError:
        return b""
