"""The checks of ``pmagent doctor``. Each check answers ok, warn or fail; none raises, none writes to the workspace."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

import msgspec

from pmagent import __version__, _origin
from pmagent.actors.core.extras import install
from pmagent.actors.known import blob_check
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import parse_time
from pmagent.events.log import ahead_seconds
from pmagent.events.named_blobs import BlobsChecked
from pmagent.when import short, sized, spoken
from pmagent.workspace.layout import Layout, workspace_around
from pmagent.workspace.presence import is_workspace, log_gone
from pmagent.workspace.settings import FILE, WORKSPACE, AuditSettings, ReasoningSettings, resolve, unknown_variables
from pmagent.workspace.settings_programs import ConfigError
from pmagent.workspace.trust import NotAccepted, require_accepted
from pmagent.workspace.user_registry import Registry, trusted

State = Literal["ok", "warn", "fail"]

TOLD_BYTES: Final = 128 * 1024 * 1024
"""That it takes a while is told where log and blobs have more bytes than this."""

SPACE_WARN: Final = 1024 * 1024 * 1024
SPACE_FAIL: Final = 64 * 1024 * 1024
SANDBOX_SECONDS: Final = 10.0
CLOCK_EARLIEST: Final = datetime(2025, 1, 1, tzinfo=UTC)

PROGRAMS: Final[dict[str, str]] = {
    "git": "tells the branch, clones what is audited: pmagent init, kernel refresh and audit need it",
    "claude": "makes plans; without it pmagent run needs --plan FILE",
    "strace": "the fault tests of the log",
    "lnav": "reads the log with colours and SQL: pmagent lnav --install",
}
_BY_MODE: Final[dict[str, State]] = {"NORMAL": "ok", "DEGRADED": "warn"}
_DEPENDENCIES: Final = ("anyio", "click", "msgspec", "structlog", "watchfiles")


class Check(msgspec.Struct, frozen=True):
    """One finding: ``remedy`` says what to do ("" when nothing is)."""

    name: str
    state: State
    text: str
    remedy: str = ""


def all_checks(
    flag: str | None, environ: Mapping[str, str], note: Callable[[str], None] = lambda _: None
) -> list[Check]:
    """Every check, in order. Without an understood workspace, only those that need none. ``note`` is told of what takes
    a while."""
    checks = [Check("origin", "ok", f"all packages come from {_origin.ROOT}"), _versions()]
    try:
        resolved = resolve(flag, environ)
        workspace = resolved.workspace
        checks.append(Check("settings", "ok", f"understood ({FILE}, PMAGENT_*)"))
        checks.append(_reasoning(resolved.settings.reasoning, environ))
        checks.append(_auditing(resolved.settings.audit, environ))
    except ConfigError as error:
        checks.append(Check("settings", "fail", error.message, error.hint))
        named = flag or environ.get(WORKSPACE)
        workspace = Path(named).absolute() if named else workspace_around(Path.cwd())
    if unknown := unknown_variables(environ):
        checks.append(Check("variables", "warn", f"mean nothing: {', '.join(unknown)}", "pmagent help environment"))
    layout = Layout(workspace)
    looks: dict[str, Callable[[Layout], Check]] = {**_LOOKS, "log": partial(_log, note=note)}
    looks |= {"database": _database} if layout.evidence.database else {}
    for name, of_environment in (("programs", _programs), ("notifications", _notifications), ("guests", _guests)):
        looks[name] = partial(of_environment, environ=environ)
    for name, look in looks.items():
        try:
            checks.append(look(layout))
        except (PmagentError, OSError) as error:
            hint = error.hint if isinstance(error, PmagentError) else ""
            checks.append(Check(name, "fail", str(error), hint))
    checks += [_clock(), _sandbox()]
    checks += [_program(name, use) for name, use in PROGRAMS.items()]
    return checks


def _versions() -> Check:
    found = []
    for name in _DEPENDENCIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return Check("versions", "fail", f"{name} is not installed", "make setup")
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("versions", "ok", f"pmagent {__version__}, Python {python}, {', '.join(found)}")


def _reasoning(settings: ReasoningSettings, environ: Mapping[str, str]) -> Check:
    """Whether the engine of the settings can be asked; nothing is imported or sent."""
    from pmagent.actors.model.models import Models, ModelUnavailable

    if settings.engine == "rules":
        return Check("reasoning", "ok", "by rules: needs no model, no key and no network")
    try:
        Models(environ).check(settings.engine, settings.model)
    except ModelUnavailable as error:
        return Check("reasoning", "warn", f"{settings.engine}: {error.message}", error.hint)
    return Check("reasoning", "ok", f"{settings.engine} asks {settings.model}; what that needs is there")


def _auditing(settings: AuditSettings, environ: Mapping[str, str]) -> Check:
    """Whether an audit by the settings could begin; nothing is imported or sent."""
    from importlib.util import find_spec

    from pmagent.actors.model.models import Models, ModelUnavailable

    if find_spec("pymupdf") is None:
        return Check("audits", "warn", "PyMuPDF is not installed, which reads reports", install("audit"))
    try:
        for name in filter(None, (settings.model, settings.vision_model)):
            Models(environ).check("langchain", name)
    except ModelUnavailable as error:
        return Check("audits", "warn", error.message, error.hint)
    by = settings.model or "the rules: needs no model, no key and no network"
    return Check("audits", "ok", f"judged by {by}; images are looked at by {settings.vision_model or 'nobody'}")


def _workspace(layout: Layout) -> Check:
    if not layout.folder.is_dir():
        return Check("workspace", "warn", f"{layout.workspace} has no .pmagent", "pmagent init")
    return Check("workspace", "ok", str(layout.workspace))


def _runs(layout: Layout) -> Check:
    """Whether a run could go by the workspace's configuration, and leave its documents where that says."""
    from pmagent.orchestra.request import configured

    source, _ = configured(layout.workspace)
    return Check("runs", "ok", source or "no orchestra.config.yaml: the specification's values")


def _programs(layout: Layout, environ: Mapping[str, str]) -> Check:
    """Which programs tasks may start, where each was found, and which folders the sandbox shows for it."""
    from pmagent.actors.sandbox.programs import add_line, git_folder, searched
    from pmagent.actors.sandbox.spec import PLACES
    from pmagent.orchestra.request import configured, programs_of

    source, config = configured(layout.workspace)
    programs = programs_of(config, layout.workspace, searched(environ))
    root = os.path.realpath(layout.workspace)
    text = [_shown(program.path, program.shows, root) for program in programs]
    if git := git_folder(root):
        text.append(_shown(f"{root}/.git", [git], root))
    missing = [name for name in config.whitelist_tools if name not in {program.name for program in programs}]
    lacks = dict.fromkeys(folder for program in programs for folder in program.lacks)
    if missing:
        text.append(f"not found in {', '.join(PLACES)}: {', '.join(missing)}")
    mend = [add_line(folder) for folder in lacks]
    if missing and source:
        mend.append("install what is missing, or take it out of whitelist_tools")
    return Check("programs", "warn" if mend else "ok", "; ".join(text), "; ".join(mend))


def _shown(path: str, shows: Iterable[str], root: str) -> str:
    folders = ", ".join(_near(folder, root) for folder in shows)
    return f"{_near(path, root)} shows {folders}" if folders else _near(path, root)


def _near(path: str, root: str) -> str:
    """The path, from the workspace or this user's home on where it lies in it."""
    home = os.path.realpath(os.path.expanduser("~"))
    if path.startswith(f"{root}/"):
        return path.removeprefix(f"{root}/")
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


def _surfaces(layout: Layout) -> Check:
    from pmagent.actors.kernel.mode import NO_SURFACES
    from pmagent.oa.reading import kernel_status

    if not is_workspace(layout.workspace):
        return Check("surfaces", "warn", "there are none yet", "pmagent init")
    status = kernel_status(layout.workspace)
    bad = [f"{name} {state.replace('_', ' ')}" for name, state in status["health"].items() if state != "ok"]
    if status["reasons"] == [NO_SURFACES.text]:
        return Check("surfaces", "ok", NO_SURFACES.text)
    text = f"mode {status['mode']}" + (f"; {', '.join(bad)}" if bad else "; all surfaces are valid")
    if status["reasons"]:
        text += f"; {'; '.join(status['reasons'])}"
    state = _BY_MODE.get(status["mode"], "fail")
    remedies = status["interpretation"]["recommended_commands"]
    return Check("surfaces", state, text, "; ".join(remedies))


def _log(layout: Layout, note: Callable[[str], None]) -> Check:
    """Every line of the log, and every blob that it names."""
    store = layout.store
    with suppress(NotFound):
        store.blobs().check("0" * 64)  # their place answers, also where no event names one yet
    size = store.size()
    if sum(size) > TOLD_BYTES:
        note(f"checking {sized(size.lines)} of log and {sized(size.blobs)} of blobs")
    try:
        result = store.verify(blobs=blob_check(store.blobs()))
    except NotFound:
        if (gone := log_gone(layout)) is not None:
            return Check("log", "fail", gone.message, gone.hint)
        return Check("log", "warn", "there is none yet", "after pmagent init, pmagent up begins it")
    blobs = result.blobs or BlobsChecked()
    if result.finding is not None:
        found = result.finding
        where = f"{found.file}, byte {found.offset}, position {found.position}"
        remedy = f"pmagent log export --until {result.tail.position} saves what is intact"
        if blobs.bad:
            where = f"{blobs.bad:,} of {blobs.checked:,} blobs are bad; {where}"
            remedy = "pmagent log verify names them; restore them from a copy"
        return Check("log", "fail", f"corrupt: {where}: {found.reason}", remedy)
    amount = f"{result.events:,} events, {sized(result.bytes)}; {blobs.checked:,} blobs, {sized(blobs.bytes)}"
    return Check("log", "ok", f"intact: {amount}; position {result.tail.position}")


def _database(layout: Layout) -> Check:
    """Whether the database that holds the log promises what a log needs."""
    if found := layout.store.faults():
        state: State = "fail" if any(fault.grave for fault in found) else "warn"
        return Check("database", state, "; ".join(one.found for one in found), "; ".join(one.mend for one in found))
    how = "an event counts when a standby has it" if layout.evidence.replicated else "one server, without a standby"
    return Check("database", "ok", f"{layout.store.place}: {how}")


def _trust(layout: Layout) -> Check:
    """Whether the log is this user's own, as the registry knows it."""
    registry = Registry()
    known = trusted(layout, registry)
    if registry.folder.is_dir() and not os.access(registry.folder, os.W_OK | os.X_OK):
        what = f"this user's registry {registry.folder} cannot be written"
        return Check("trust", "fail", what, "give this user the right to; until then a loss of events is found late")
    if known is None:
        return Check("trust", "ok", "there is no log yet")
    return Check("trust", "ok", f"the log is this user's own, known up to position {known.position}")


def _accepted(layout: Layout) -> Check:
    """Whether this user has accepted all that the workspace's configuration lets be done."""
    try:
        require_accepted(layout.workspace)
    except NotAccepted as error:
        hint = error.hint if is_workspace(layout.workspace) else "pmagent init accepts what it writes"
        return Check("accepted", "warn", error.message, hint)
    return Check("accepted", "ok", "all that the configuration lets be done is accepted by this user")


def _daemon(layout: Layout) -> Check:
    import anyio

    from pmagent.jobs.registry import held_by_job
    from pmagent.service.client import DaemonUnreachable, call_daemon
    from pmagent.service.wire import BadMessage, RemoteError

    found = layout.store.holder()
    if not found.live:
        return Check("daemon", "ok", "not running; commands do their own work")
    if (job := held_by_job(layout)) is not None:
        what = f"not running; the {job.kind.word} of another shell holds the log ({job.process})"
        return Check("daemon", "ok", what, "it takes no requests; others wait for its end")
    since = f", since {short(found.since)} UTC" if found.since else ""
    if found.elsewhere:
        return Check("daemon", "ok", f"on another machine: {found.note}{since}", "pmagent status shows its standbys")
    try:
        anyio.run(call_daemon, layout, "status", {})
    except (DaemonUnreachable, BadMessage, RemoteError) as error:
        return Check("daemon", "fail", f"{found.note or 'a process'} holds the log: {error.message}", error.hint)
    return Check("daemon", "ok", f"running: {found.note or 'a process'}{since}")


def _operators(layout: Layout) -> Check:
    """The operators of the console. Raises BadOperators."""
    from pmagent.console.auth import operators
    from pmagent.console.paths import ConsolePaths

    known = operators.read(ConsolePaths(layout).operators).values()
    if not known:
        return Check("operators", "ok", "none may enter the console yet; pmagent console adds you")
    approving = sum(operator.role == "approve" for operator in known)
    return Check("operators", "ok", f"{len(known)} may enter the console, {approving} may approve there")


def _permissions(layout: Layout) -> Check:
    """Nobody else may write what is ours, nor look into what is private."""
    files, wrong = layout.store.files(), []
    ours = (layout.folder, layout.home, *files.folders, *files.written, *files.lease)
    for path, forbidden in (*((path, 0o022) for path in ours), (layout.run, 0o077), (layout.socket, 0o077)):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            wrong.append(f"{path} is a symbolic link")
        elif mode & forbidden:
            wrong.append(f"{path} has mode {mode:04o}")
        elif found.st_uid != os.getuid():
            wrong.append(f"{path} belongs to user {found.st_uid}")
    if wrong:
        return Check("permissions", "fail", "; ".join(wrong), "chown it, and chmod go-w; .pmagent/run: chmod go-rwx")
    return Check("permissions", "ok", "only this user writes .pmagent")


_DOCUMENTS: Final = ("runs", "jobs", "sessions", "audit")


def _privacy(layout: Layout) -> Check:
    """Other users of this machine read no documents: the folders of older releases were open to them."""
    workspace = layout.workspace.resolve()
    if any(not above.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH) for above in (workspace, *workspace.parents)):
        return Check("privacy", "ok", "no other user can enter the workspace")
    open_ = []
    for name in _DOCUMENTS:
        with suppress(FileNotFoundError):
            if (workspace / name).lstat().st_mode & 0o077:
                open_.append(name)
    if open_:
        what = f"other users of this machine may look into {', '.join(open_)}"
        folders = " ".join(shlex.quote(str(workspace / name)) for name in open_)
        return Check("privacy", "warn", what, f"chmod -R go-rwx {folders}, unless you share them")
    return Check("privacy", "ok", "closed to other users")


def _space(layout: Layout) -> Check:
    free = shutil.disk_usage(layout.folder if layout.folder.is_dir() else layout.workspace).free
    state: State = "fail" if free < SPACE_FAIL else "warn" if free < SPACE_WARN else "ok"
    return Check("disk", state, f"{sized(free)} free", "" if state == "ok" else "make room: a full disk stops the log")


def _clock_against_log(layout: Layout) -> Check:
    try:
        with closing(layout.store.reader()) as storage:
            last = storage.tail().time
    except NotFound:
        return Check("log time", "ok", "no log to compare the clock with")
    if ahead := ahead_seconds(last):
        return Check("log time", "warn", f"the log's time stands {spoken(ahead)} ahead of this machine's clock",
                     "if the clock is wrong, set it; nothing waits for it, but times in the log are ahead by as much")
    old = spoken((datetime.now(UTC) - parse_time(last)).total_seconds()) if last else ""
    return Check("log time", "ok", f"the last event is {old} old" if last else "the log is empty")


def _documents(layout: Layout) -> Check:
    """Whether a projection was halted when documents were written last. Raises DocumentUnwritable."""
    from pmagent.projections.core.disk import noted_halts

    stale = [f"{one.projection} since position {one.since} ({one.error} in {one.place})"
             for one in noted_halts(layout.workspace)]
    if stale:
        return Check("documents", "fail", f"halted, and their documents stale: {'; '.join(stale)}",
                     "the log is unharmed; start a version that does not fail; report it")
    return Check("documents", "ok", "no projection is halted")


def _clock() -> Check:
    now = datetime.now(UTC)
    if now < CLOCK_EARLIEST:
        return Check("clock", "fail", f"it says {now:%Y-%m-%d}", "set the clock")
    return Check("clock", "ok", f"{now:%Y-%m-%dT%H:%M:%SZ}")


def _sandbox() -> Check:
    """Whether tools can run: in a real sandbox, with a program that does nothing. Nothing else of pmagent needs it."""
    import anyio

    from pmagent.actors.sandbox.bubblewrap import bubblewrap
    from pmagent.actors.sandbox.runner import run
    from pmagent.actors.sandbox.spec import Limits, SandboxRefused, SandboxSpec, SandboxUnavailable

    with tempfile.TemporaryDirectory() as folder:
        spec = SandboxSpec(argv=("true",), artifacts=os.path.realpath(folder), limits=Limits(seconds=SANDBOX_SECONDS))
        try:
            outcome = anyio.run(run, spec)
        except (SandboxRefused, SandboxUnavailable) as error:
            return Check("sandbox", "warn", f"no tool can run: {error.message}", error.hint)
    if outcome.exit_code != 0:
        end = f"exit code {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
        return Check("sandbox", "warn", f"no tool can run: true ended with {end}", "run true yourself; is it well?")
    ids = "; root's tools get other ids" if os.geteuid() == 0 else ""
    return Check("sandbox", "ok", f"{bubblewrap()} works{ids}; not enforced: {'; '.join(outcome.unenforced)}")


def _program(name: str, use: str) -> Check:
    if found := shutil.which(name):
        return Check(name, "ok", found)
    return Check(name, "warn", f"not installed; {use}", f"install {name}, if you want that")


def _notifications(layout: Layout, environ: Mapping[str, str]) -> Check:
    """Whether each channel that is configured can be used, and what the last tries came to; nothing is sent."""
    from pmagent.alerts.channels import CHANNELS, channel_of
    from pmagent.alerts.ledger import troubles

    settings = resolve(str(layout.workspace), environ).settings.notifications
    named = [name for name in CHANNELS if channel_of(name, settings, environ) is not None]
    if found := troubles(layout):
        return Check("notifications", "warn", "; ".join(found), "pmagent notify test tries again")
    return Check("notifications", "ok", f"sent over {', '.join(named)}" if named else "no channel is configured")


def _guests(layout: Layout, environ: Mapping[str, str]) -> Check:
    """Which agents' harnesses are connected, whether their hooks are in force, and what can go past them."""
    from pmagent.guests.doctor import look

    return Check("guests", *look(layout, environ))


_LOOKS: Final[dict[str, Callable[[Layout], Check]]] = {
    "workspace": _workspace,
    "runs": _runs,
    "programs": partial(_programs, environ={}),
    "surfaces": _surfaces,
    "log": partial(_log, note=lambda _: None),
    "trust": _trust,
    "accepted": _accepted,
    "log time": _clock_against_log,
    "documents": _documents,
    "daemon": _daemon,
    "permissions": _permissions,
    "privacy": _privacy,
    "operators": _operators,
    "notifications": partial(_notifications, environ={}),
    "guests": partial(_guests, environ={}),
    "disk": _space,
}
