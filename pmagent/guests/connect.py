"""Connecting a harness, and undoing it exactly (docs/guests.md).

The record ``.pmagent/data/guests.json`` keeps what each file was before. A file that is still as it was left is put
back byte for byte; from one that others have changed since, only the hook's own entries are taken out.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.events.atomic import read_plain, write_atomic
from pmagent.events.errors import PmagentError
from pmagent.guests import claude_settings, codex_trust, harnesses
from pmagent.guests.harnesses import OLDEST, Hook, Mode, Scope, too_old
from pmagent.workspace.layout import Layout

VERSION_SECONDS: Final = 30.0
SETTINGS_BYTES_MAX: Final = 8 << 20
VERSIONED: Final = ("claude", "codex", "gemini", "opencode")
"""Harnesses whose command is called as they are, and tells its version."""


class CannotConnect(PmagentError, exit_code=1):
    """A harness cannot be connected or disconnected; nothing was written."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was changed: its text before (None: it was not there), the SHA-256 of what was left, and the folders
    that were made for it, outermost first. ``keys``: of the hooks that it trusts."""

    path: str
    before: str | None
    after: str
    folders: list[str] = []
    keys: list[str] = []


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A harness that starts the hook. ``files``: the settings first. ``workspace``: where it lay then; "" of an older
    record."""

    harness: str
    scope: Scope
    mode: Mode
    wait: int
    version: str = ""
    files: list[Kept]
    workspace: str = ""


class Record(msgspec.Struct, frozen=True):
    """All connections of a workspace."""

    connections: list[Connection] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that connecting or disconnecting would make. ``before``: the file as it is; ``original``: as it was
    before any connection. ``exact``: the change is undone byte for byte."""

    path: Path
    before: str | None
    after: str | None
    original: str | None = None
    folders: list[str] = []
    exact: bool = True

    @property
    def difference(self) -> list[str]:
        """The change as a unified difference; [] where there is none."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        ends = [str(self.path) if text is not None else "/dev/null" for text in (self.before, self.after)]
        return list(difflib.unified_diff(old, new, ends[0], ends[1], lineterm=""))


def hook_of(layout: Layout) -> Hook:
    """The hook of a workspace: its own copy, so that another version of pmagent, or of its Python, breaks nothing."""
    return Hook(os.path.realpath(sys.executable), str(layout.home / "hook.py"), str(layout.home))


def read_record(layout: Layout) -> Record:
    """The connections, with the files of a workspace that was moved since where they lie now. Raises CannotConnect for
    a file that is not understood."""
    path = _record_path(layout)
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
        return Record([_moved(one, str(layout.workspace)) for one in record.connections])
    except FileNotFoundError:
        return Record()
    except msgspec.DecodeError as error:
        raise CannotConnect(f"{path} is not understood: {error}", "take out the hook's entries by hand") from None


def _moved(one: Connection, workspace: str) -> Connection:
    was = f"{one.workspace}/"

    def here(path: str) -> str:
        return f"{workspace}/{path.removeprefix(was)}" if one.workspace and path.startswith(was) else path

    files = [msgspec.structs.replace(file, path=here(file.path), folders=[*map(here, file.folders)]) for file in
             one.files]  # fmt: skip
    return msgspec.structs.replace(one, files=files)


def _hooks_of(layout: Layout, one: Connection | None) -> list[Hook]:
    """The hook of a workspace, and the one that it had where it lay when it was connected, if nothing is left there."""
    before = hook_of(Layout(Path(one.workspace))) if one is not None and one.workspace else None
    return [hook_of(layout), *([before] if before is not None and not os.path.lexists(before.file) else [])]


def plan_connect(
    layout: Layout, harness: str, scope: Scope, mode: Mode, wait: int, environ: Mapping[str, str]
) -> tuple[Plan, str]:
    """The changes that connecting would make, and the harness's version ("" where it is not found). Raises
    CannotConnect."""
    path = harnesses.place(harness, scope, layout.workspace, user_home(environ), environ)
    if path is None:
        raise CannotConnect(f"{harness} has no {scope} settings that pmagent knows", "take --user or --project")
    version = version_of(harness, environ)
    if mode == "enforce" and too_old(harness, version):
        oldest = ".".join(map(str, OLDEST[harness]))
        raise CannotConnect(f"{harness} {version} lets tools run when a hook fails", f"update it to {oldest} or later")
    hook, before = hook_of(layout), _text_of(path)
    known = _known(layout, harness, scope)
    kept = known.files[0] if known is not None else None
    ours_alone = kept is not None and kept.before is None
    if kept is not None and _sum(before) == kept.after:
        original = kept.before
    else:
        original = _without(path, before, _hooks_of(layout, known), ours_alone=ours_alone)
    after = _with(path, original, harness, mode, wait, hook, managed=scope == "managed")
    for fault in left_out(harness, after, environ)[:1]:
        raise CannotConnect(f"Claude Code would leave out all of {path}, in silence: {fault}", "mend that first")
    return Plan(
        path=path, before=before, after=after, original=original,
        folders=kept.folders if kept is not None else _missing(path.parent),
    ), version  # fmt: skip


def connect(
    layout: Layout, harness: str, scope: Scope, mode: Mode, wait: int, plan: Plan, version: str,
    environ: Mapping[str, str],
) -> list[str]:  # fmt: skip
    """Carry the plan out; what remains to be done by hand. The hook's copy comes first, the record before the settings:
    whatever ends this halfway, disconnecting undoes it. Raises CannotConnect, OSError."""
    layout.prepare()
    write_atomic(Path(hook_of(layout).file), installed_source(), 0o644)
    _try_hook(hook_of(layout))
    assert plan.after is not None
    after = plan.after
    files = [Kept(path=str(plan.path), before=plan.original, after=_sum(after), folders=plan.folders)]
    known = _known(layout, harness, scope)
    trust = next(iter(known.files[1:]), None) if known is not None else None
    made = Connection(
        harness=harness, scope=scope, mode=mode, wait=wait, version=version, files=files,
        workspace=str(layout.workspace),
    )  # fmt: skip
    _remember(layout, made)
    _write(plan)
    if harness == "gemini" and scope == "project" and not trusts(layout.workspace, environ):
        what = f"Gemini CLI skips the hooks of {layout.workspace}, which its user does not trust"
        return [f"{what}: start gemini there, and trust it; or connect it with --user"]
    if harness != "codex" or scope == "managed":
        return []
    program = shutil.which("codex", path=environ.get("PATH"))
    if program is None:
        return ["Codex skips hooks that nobody has trusted, and is not found here: trust them in Codex, with /hooks"]
    config = Path(environ.get("CODEX_HOME") or user_home(environ) / ".codex") / "config.toml"
    was = _text_of(config)
    original = trust.before if trust is not None and _sum(was) == trust.after else was
    try:
        keys = codex_trust.trust(program, environ, layout.workspace, plan.path, hook_of(layout))
    except codex_trust.CodexFailed as error:
        return [f"{error.message}: {error.hint}"]
    kept = Kept(path=str(config), before=original, after=_sum(_text_of(config)), keys=keys)
    _remember(layout, msgspec.structs.replace(made, files=[*files, kept]))
    return []


def write_plugin(folder: Path, mode: Mode, wait: int) -> list[Path]:
    """Write a plugin folder of Claude Code, which works in whatever workspace it is enabled in; its files. Raises
    CannotConnect where other files lie there, OSError."""
    texts = harnesses.plugin_folder(mode, wait, os.path.realpath(sys.executable))
    files = {folder / name: text.encode() for name, text in texts.items()} | {folder / "hook.py": installed_source()}
    if folder.exists() and not {path for path in folder.rglob("*") if path.is_file()} <= set(files):
        raise CannotConnect(f"{folder} holds other files", "name an empty folder")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    return list(files)


def plan_disconnect(layout: Layout, harness: str, scope: Scope) -> tuple[Connection, list[Plan]]:
    """The changes that disconnecting would make. Raises CannotConnect where it is not connected, or a file is not
    understood."""
    known = _known(layout, harness, scope)
    if known is None:
        raise CannotConnect(f"{harness} is not connected here ({scope})", "pmagent doctor names the connections")
    plans = []
    for kept in known.files:
        path, before = Path(kept.path), _text_of(Path(kept.path))
        exact = _sum(before) == kept.after
        ours_alone = kept.before is None
        hooks = _hooks_of(layout, known)
        after = kept.before if exact else _without(path, before, hooks, kept.keys, ours_alone=ours_alone)
        plans.append(Plan(path=path, before=before, after=after, folders=kept.folders, exact=exact))
    return known, plans


def disconnect(layout: Layout, connection: Connection, plans: list[Plan]) -> None:
    """Carry the plans out, then forget the connection; with the last one the hook's copy goes. Raises CannotConnect,
    OSError."""
    for plan in plans:
        _write(plan)
        for folder in reversed(plan.folders):
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
    left = [one for one in read_record(layout).connections if one != connection]
    write_atomic(_record_path(layout), msgspec.json.encode(Record(left)), 0o600)
    if not left:
        Path(hook_of(layout).file).unlink(missing_ok=True)


def version_of(harness: str, environ: Mapping[str, str]) -> str:
    """The version of the installed program; "" where it is not found, or does not say."""
    program = shutil.which(harness, path=environ.get("PATH"))
    if program is None or harness not in VERSIONED:
        return ""
    still = {**environ, "DISABLE_AUTOUPDATER": "1"}
    try:
        done = subprocess.run(
            [program, "--version"], env=still, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=VERSION_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotConnect(f"{program} --version does not end well: {error}", "does it start?") from None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return found[0] if found else ""


def left_out(harness: str, text: str, environ: Mapping[str, str]) -> list[str]:
    """The values for which a harness would leave out a settings file with this text, in its own words; [] where it does
    not say. Raises ValueError where the text is not understood."""
    program = shutil.which(harness, path=environ.get("PATH"))
    return claude_settings.faults(program, text, environ) if harness == "claude" and program is not None else []


class _Trust(msgspec.Struct):
    enabled: bool = True


class _Security(msgspec.Struct, rename="camel"):
    folder_trust: _Trust = msgspec.field(default_factory=_Trust)


class _Gemini(msgspec.Struct):
    security: _Security = msgspec.field(default_factory=_Security)


def trusts(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether Gemini CLI's user trusts the folder, or all folders; it skips a project's hooks in silence otherwise. A
    file that is not understood trusts nothing."""
    own, real = user_home(environ) / ".gemini", Path(os.path.realpath(folder))
    try:
        settings = msgspec.json.decode(_text_of(own / "settings.json") or "{}", type=_Gemini)
        named = msgspec.json.decode(_text_of(own / "trustedFolders.json") or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return False
    if not settings.security.folder_trust.enabled:
        return True
    paths = {Path(os.path.realpath(path)): how for path, how in named.items()}
    roots = [path if how == "TRUST_FOLDER" else path.parent for path, how in paths.items() if how.startswith("TRUST_")]
    return paths.get(real) != "DO_NOT_TRUST" and any(real.is_relative_to(root) for root in roots)


def _try_hook(hook: Hook) -> None:
    """Start the hook as a harness would, with nothing to say: it must refuse. Raises CannotConnect."""
    words = [*hook.words("none", "none", "enforce", 0)[:-1], "/nonexistent"]
    done = subprocess.run(words, input=b"", capture_output=True, check=False, timeout=VERSION_SECONDS)
    if done.returncode != 2 or done.stdout or not done.stderr:
        what = f"{hook.python} does not run the hook (exit code {done.returncode})"
        raise CannotConnect(what, f"try it: {' '.join(words)}")


def _with(
    path: Path, text: str | None, harness: str, mode: Mode, wait: int, hook: Hook, *, managed: bool = False
) -> str:
    try:
        if path.suffix == ".toml":
            if text is not None and text.strip():
                raise ValueError("an administrator's rules stand in it already")
            return harnesses.requirements(mode, wait, hook)
        made = harnesses.merged(text, harness, mode, wait, hook)
        return harnesses.managed(made) if (harness, mode, managed) == ("claude", "enforce", True) else made
    except ValueError as error:
        raise CannotConnect(f"{path} cannot be extended: {error}", "mend it, or add the hook by hand") from None


def _without(
    path: Path, text: str | None, hooks: Sequence[Hook], keys: Sequence[str] = (), *, ours_alone: bool = False
) -> str | None:
    """The text of a file without what starts the hook, or trusts it; None where nothing else is in it that was made for
    us (``ours_alone``)."""
    if text is None or keys:
        return text and codex_trust.without_trust(text, keys)
    if path.suffix != ".json":
        return None if any(hook.file in text for hook in hooks) else text
    try:
        left = reduce(harnesses.removed, hooks, text)
        return None if ours_alone and harnesses.is_empty(left) else left
    except ValueError as error:
        raise CannotConnect(f"{path} is not understood: {error}", "mend it first") from None


def _text_of(path: Path) -> str | None:
    try:
        raw = read_plain(path, SETTINGS_BYTES_MAX)
        if len(raw) > SETTINGS_BYTES_MAX:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return raw.decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotConnect(f"{path} cannot be read: {error}", "mend it first") from None


def _write(plan: Plan) -> None:
    """Write a file as it was planned, in the place of what was shown: nothing else, wherever a link leads by now.
    Raises CannotConnect, OSError."""
    if plan.after == plan.before:
        return
    file = plan.path.resolve()

    def look() -> None:
        if _text_of(file) != plan.before:
            raise CannotConnect(f"{plan.path} has been changed since it was shown, and stays so", "try it again")

    if plan.after is None:
        look()
        file.unlink(missing_ok=True)
        return
    plan.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = plan.path.stat().st_mode & 0o777 if plan.path.exists() else 0o600
    write_atomic(file, plan.after.encode(), mode, look)


def installed_source() -> bytes:
    """The hook of this version of pmagent."""
    from pmagent.guests import hook

    return Path(hook.__file__).read_bytes()


def _missing(folder: Path) -> list[str]:
    """The folders that would have to be made for ``folder``, outermost first."""
    return [str(one) for one in reversed((folder, *folder.parents)) if not one.exists()]


def _known(layout: Layout, harness: str, scope: Scope) -> Connection | None:
    connections = read_record(layout).connections
    return next((one for one in connections if (one.harness, one.scope) == (harness, scope)), None)


def _remember(layout: Layout, made: Connection) -> None:
    others = [one for one in read_record(layout).connections if (one.harness, one.scope) != (made.harness, made.scope)]
    write_atomic(_record_path(layout), msgspec.json.encode(Record([*others, made])), 0o600)


def _record_path(layout: Layout) -> Path:
    return layout.home / "guests.json"


def user_home(environ: Mapping[str, str]) -> Path:
    """The user's home folder."""
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _sum(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def document(connection: Connection) -> dict[str, Any]:
    """A connection, without what files held before."""
    named = {name: getattr(connection, name) for name in ("harness", "scope", "mode", "wait", "version")}
    return {**named, "files": [file.path for file in connection.files]}
