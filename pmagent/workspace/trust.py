"""Which configuration this user has accepted for a workspace: what its files may have done (``pmagent trust``).

A configuration comes with a repository: programs to run, paths to write, hosts to reach. None of it is obeyed before
this user has accepted it; the additions of a later version are accepted anew. The comparison is of *powers*: a sorted
list of what may be done, and limits. A change that takes powers away asks nobody. The accepted powers lie in this
user's registry, with digests of the files, so that unchanged files are not even parsed.
"""

from __future__ import annotations

import math
import os
import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.actors.orchestra.planning.config import FILE as RUNS_FILE
from pmagent.actors.orchestra.planning.config import read_config
from pmagent.clean import clean_line
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.events.atomic import read_plain
from pmagent.events.errors import PmagentError
from pmagent.events.user_state import ACCEPTED, VARIABLE
from pmagent.orchestra.paths import normalized
from pmagent.orchestra.request import DEFAULTS, of_workspace
from pmagent.service.log_files import shown
from pmagent.workspace.layout import POLICY, POLICY_BYTES_MAX
from pmagent.workspace.settings import FILE, Resolved, Settings, raw_of, resolve, settings_table
from pmagent.workspace.user_registry import Registry

LINES_MAX: Final = 20
LINE_CHARS_MAX: Final = 400
POLICIES: Final = (POLICY, POLICY.removesuffix("yaml") + "cedar")
"""The files by which calls of guests are judged. Any change of one is accepted anew: a rule less may allow more."""
UNLIMITED: Final = 1e300
"""The limit of what has none: JSON knows no infinity."""

_HARMLESS: Final = frozenset((
    "kernel.phase", "kernel.last_completed_phase", "cli.color", "cli.tail_lines", "console.port", "pla.operator",
    "notifications.least", "notifications.requests",
))  # fmt: skip
"""Settings that give no power."""
_NARROWEST: Final[dict[str, object]] = {
    "kernel.surfaces": "required",
    "reasoning.engine": "rules", "pla.credentials": "refuse", "pla.two_persons": True, "pla.device_serial": None,
    "notifications.smtp_tls": "starttls", "storage.replicated": True,
    "console.passkeys": "required",
}  # fmt: skip
"""The value of a setting that gives least, where that is not "" or false."""
_PRICES: Final = ("input_usd", "output_usd")
"""A lower price lets more be spent."""
_TITLES: Final = {
    "program": "programs", "check": "checks", "guard": "guards", "planner": "planner", "read": "reads",
    "write": "writes", "documents": "documents", "network": "network", "policy": "policies", "setting": "settings",
    "agents": "agents", "limit": "limits",
}  # fmt: skip


class Powers(msgspec.Struct, frozen=True):
    """The powers that a configuration gives: ``items`` (``kind: what``, sorted), and ``limits``, of which a larger one
    is more."""

    items: list[str] = []
    limits: dict[str, float] = {}


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The powers that this user has accepted for a workspace, and the SHA-256 of the files as they were then."""

    workspace: str
    powers: Powers
    files: dict[str, str]


class NotAccepted(PmagentError, exit_code=7):
    """This user has not accepted the workspace's configuration, or not all of it; nothing was started. ``beyond``: what
    a configuration asks for that the command named itself; None: it is the workspace's own."""

    def __init__(self, message: str, beyond: Powers | None = None) -> None:
        super().__init__(message, "pmagent trust shows what it may do, and asks; --trust-workspace accepts it unasked")
        self.beyond = beyond


class Offer(NamedTuple):
    """The configuration as it was read: what it asks for, and what of that is new (all of it, where ``first``)."""

    powers: Powers
    files: dict[str, str]
    new: Powers
    first: bool


def offer(workspace: Path) -> Offer:
    """Read the workspace's configuration. Raises RegistryUnusable, OSError."""
    accepted = Registry().read(ACCEPTED, workspace, Accepted)
    raws = _raws(workspace)
    files = {name: sha256(raw).hexdigest() for name, raw in raws.items()}
    if accepted is not None and accepted.files == files:
        return Offer(accepted.powers, files, Powers(), first=False)
    powers = _powers(workspace, raws)
    before = accepted.powers if accepted is not None else Powers()
    return Offer(powers, files, wider(before, powers), first=accepted is None)


def accept(workspace: Path, given: Offer | None = None) -> Powers:
    """Accept the workspace's configuration: as it was ``given``, by default as it lies there now. Raises
    RegistryUnusable, OSError."""
    given = given or offer(workspace)
    _write(workspace, given.powers, given.files)
    return given.powers


def accept_also(workspace: Path, powers: Powers) -> None:
    """Accept ``powers`` besides what is accepted. Raises RegistryUnusable, OSError."""
    accepted = Registry().read(ACCEPTED, workspace, Accepted)
    before = accepted.powers if accepted is not None else Powers()
    limits = {name: max(powers.limits.get(name, value), value) for name, value in before.limits.items()}
    together = Powers(sorted({*before.items, *powers.items}), {**powers.limits, **limits})
    _write(workspace, together, accepted.files if accepted is not None else {})


def forget(workspace: Path) -> None:
    """Accept nothing for the workspace any more. Raises RegistryUnusable, OSError."""
    Registry().forget(ACCEPTED, workspace)


def is_accepted(workspace: Path) -> bool:
    """Whether all of the workspace's configuration is accepted. Raises RegistryUnusable, OSError."""
    found = offer(workspace)
    return not found.first and found.new == Powers()


def unaccepted_of(workspace: Path) -> str | None:
    """Why nothing new is run by the workspace's configuration; None where all of it is accepted."""
    try:
        require_accepted(workspace)
    except (PmagentError, OSError) as error:
        return str(error)
    return None


def marks_of(workspace: Path) -> tuple[object, ...]:
    """A value that changes when a file that ``unaccepted_of`` reads has changed."""
    try:
        files = _files(workspace, os.environ.get(VARIABLE), os.environ.get("HOME"))
    except (PmagentError, OSError) as error:
        return (str(error),)
    return tuple(_mark(path) for path in files)


@lru_cache(maxsize=8)
def _files(workspace: Path, _state: str | None, _home: str | None) -> tuple[str, ...]:
    """As long as the environment names the same state folder. Raises RegistryUnusable, OSError."""
    registry = Registry()
    entry = registry.path(ACCEPTED, workspace)
    policies = (workspace / name for name in POLICIES)
    return tuple(map(str, (workspace / FILE, workspace / RUNS_FILE, *policies, entry, entry.parent, registry.folder)))


def _mark(path: str) -> tuple[object, ...]:
    try:
        found = os.stat(path)
    except OSError as error:
        return (error.errno,)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def require_accepted(workspace: Path) -> None:
    """Raises NotAccepted, RegistryUnusable, OSError."""
    _require(workspace, offer(workspace))


def unaccepted_policies(workspace: Path, sums: Mapping[str, str]) -> list[str]:
    """Those of the workspace's policy files that this user has not accepted with these SHA-256 sums. Whoever goes by a
    file gives the sum of what it has read: the file may be another one by now. Raises RegistryUnusable, OSError."""
    accepted = Registry().read(ACCEPTED, workspace, Accepted)
    known = accepted.powers.items if accepted is not None else []
    return [name for name in POLICIES if name in sums and _of_policy(name, sums[name]) not in known]


def accept_policy(workspace: Path, text: bytes) -> None:
    """Accept a text as the workspace's ``policy.yaml``, before it is written there. Raises RegistryUnusable,
    OSError."""
    accept_also(workspace, Powers(sorted(_of_policies({POLICY: text}).values())))


def require_known(workspace: Path) -> None:
    """Raises NotAccepted where this user has never accepted any configuration of the workspace."""
    if Registry().read(ACCEPTED, workspace, Accepted) is None:
        _require(workspace, offer(workspace))


def require_covers(workspace: Path, config: OrchestraConfig, where: str) -> None:
    """Look whether a run by ``config`` (placed, with flags), from ``where``, stays within what is accepted: programs,
    paths and network. Its limits and where it leaves its documents are for the command to say. Raises NotAccepted."""
    accepted = Registry().read(ACCEPTED, workspace, Accepted)
    before = accepted.powers if accepted is not None else Powers()
    new = wider(before, within_run(config, workspace))
    if accepted is None or new.items:
        raise NotAccepted(f"{where} asks for more than was accepted for {shown(workspace)}{_first(new)}", new)


def within_run(config: OrchestraConfig, workspace: Path) -> Powers:
    """The powers of a run's tasks."""
    found = [item for item in _of_runs(config, workspace) if not item.startswith(("documents: ", "planner prompt: "))]
    return Powers(sorted(found))


def resolved(workspace: Path, environ: Mapping[str, str]) -> Resolved:
    """The settings that hold, of a file that is accepted: what was looked at is what is read. Raises NotAccepted,
    ConfigError, RegistryUnusable."""
    raw = raw_of(workspace / FILE)
    if (accepted := Registry().read(ACCEPTED, workspace, Accepted)) is None:
        require_accepted(workspace)
    elif accepted.files.get(FILE) != sha256(raw).hexdigest():
        new = wider(accepted.powers, _of_settings_file(workspace, raw))
        if new != Powers():
            raise _widened(workspace, new)
    return resolve(str(workspace), environ, raw)


def wider(before: Powers, after: Powers) -> Powers:
    """The entries of ``after`` that ``before`` lacks."""
    items = [item for item in after.items if item not in before.items and not _covered(item, before.items)]
    limits = {name: value for name, value in after.limits.items() if value > before.limits.get(name, -math.inf)}
    return Powers(items, limits)


def lines(powers: Powers) -> list[str]:
    """The powers for people, a line for each kind, at most ``LINES_MAX``; what is too long is counted."""
    found: dict[str, list[str]] = {}
    for item in powers.items:
        kind, _, what = item.partition(": ")
        found.setdefault(kind, []).append(clean_line(what))
    if powers.limits:
        found["limit"] = [_limit(name, value) for name, value in sorted(powers.limits.items())]
    order = [*_TITLES, *(kind for kind in found if kind not in _TITLES)]
    named = [f"{_TITLES.get(kind, kind):<11}{_joined(found[kind])}" for kind in order if kind in found]
    return named[:LINES_MAX]


def _limit(name: str, value: float) -> str:
    return f"{name} {value:g}" if value < UNLIMITED else f"{name} none"


def summary(powers: Powers) -> list[str]:
    """All that matters of a configuration: settings and their limits only where they are not the defaults."""
    usual = Powers(sorted(_of_settings(Settings())), _limits_of(Settings()))
    items = [item for item in powers.items if not item.startswith("setting: ") or item not in usual.items]
    limits = {name: value for name, value in powers.limits.items() if usual.limits.get(name) != value}
    return lines(Powers(items, limits))


# --- reading the files ------------------------------------------------------------------------------------------------


def _raws(workspace: Path) -> dict[str, bytes]:
    """The files' contents; b"" of one that is missing or cannot be read: nothing goes by it then."""
    found = {}
    for name, read in ((FILE, _settings_raw), (RUNS_FILE, _runs_raw)):
        try:
            found[name] = read(workspace)
        except PmagentError:
            found[name] = b""
    return found | _policies(workspace)


def _policies(workspace: Path) -> dict[str, bytes]:
    """The policy files that are there."""
    return {
        name: read_plain(workspace / name, POLICY_BYTES_MAX) for name in POLICIES if (workspace / name).is_file()
    }  # fmt: skip


def _of_policies(raws: Mapping[str, bytes]) -> dict[str, str]:
    return {name: _of_policy(name, sha256(raws[name]).hexdigest()) for name in POLICIES if name in raws}


def _of_policy(name: str, digest: str) -> str:
    return f"agents: may do what {name} says, sha256 {digest[:16]}"


def _settings_raw(workspace: Path) -> bytes:
    return raw_of(workspace / FILE)


def _runs_raw(workspace: Path) -> bytes:
    source = of_workspace(workspace)
    return source.content if source is not None else b""


def _powers(workspace: Path, raws: Mapping[str, bytes]) -> Powers:
    """A file that is not understood gives no power: whatever would go by it is refused for that."""
    settings = _of_settings_file(workspace, raws[FILE])
    try:
        config = read_config(raws[RUNS_FILE]) if raws[RUNS_FILE] else DEFAULTS
        runs = Powers(list(_of_runs(normalized(config, workspace), workspace)), _run_limits(config))
    except PmagentError:
        runs = Powers()
    items = [*settings.items, *runs.items, *_of_policies(raws).values()]
    return Powers(sorted(items), {**settings.limits, **runs.limits})


def _of_settings_file(workspace: Path, raw: bytes) -> Powers:
    try:
        found = resolve(str(workspace), {}, raw)
    except PmagentError:
        return Powers()
    named = [*_programs("check", found.checks), *_programs("guard", found.guards)]
    return Powers(sorted([*_of_settings(found.settings), *named]), _limits_of(found.settings))


def _programs(kind: str, table: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for name, argv in table.items():
        yield f"{kind}: {name} = {shlex.join(argv)}"


def _of_settings(settings: Settings) -> Iterator[str]:
    for key, value in _values(settings):
        if _is_limit(key, value):
            continue
        narrowest: object = _NARROWEST.get(key, False if isinstance(value, bool) else "")
        if key == "kernel.check_reads":
            yield from (f"read: {os.path.expanduser(path)}" for path in str(value).split(os.pathsep) if path)
        elif value is not None and value != narrowest:
            yield f"setting: {key} = {value}"


def _limits_of(settings: Settings) -> dict[str, float]:
    found = {}
    for key, value in _values(settings):
        if _is_limit(key, value):
            found[key] = UNLIMITED if value is None else float(value)
    return found


def _values(settings: Settings) -> Iterator[tuple[str, Any]]:
    for setting in settings_table():
        if setting.key not in _HARMLESS:
            section, name = setting.key.split(".")
            yield setting.key, getattr(getattr(settings, section), name)


def _is_limit(key: str, value: object) -> bool:
    """Whether a larger value gives more; none at all (of dollars) gives most."""
    if key.endswith(_PRICES):
        return False
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (value is None and key.endswith("usd"))


def _of_runs(config: OrchestraConfig, workspace: Path) -> Iterator[str]:
    security, root = config.security, os.path.realpath(workspace)
    yield from (f"program: {name}" for name in config.whitelist_tools)
    yield f"planner: {config.llm.backend}, {config.llm.model}"
    yield from (
        f"planner prompt: {sha256(prompt.encode()).hexdigest()[:16]}"
        for prompt in {config.llm.prompts.planner, config.llm.prompts.summarizer} - _USUAL_PROMPTS
    )
    yield from (f"read: {_path(root, path)}" for path in security.fs.allow_read)
    yield from (f"write: {_path(root, path)}" for path in security.fs.allow_write)
    paths = config.paths
    yield from sorted({f"documents: {path}" for path in (paths.runs, paths.logs, paths.artifacts, paths.report)})
    yield from (f"network: {host.lower()}" for host in security.net.allow_domains)
    if config.policies.allow_network:
        yield "policy: tasks may reach the network"
    if config.policies.default_fs_mode == "rw":
        yield "policy: tasks may write where they do not say otherwise"


_USUAL_PROMPTS: Final = {DEFAULTS.llm.prompts.planner, DEFAULTS.llm.prompts.summarizer}


def _run_limits(config: OrchestraConfig) -> dict[str, float]:
    return {
        "policies.max_task_duration_sec": float(config.policies.max_task_duration_sec),
        "policies.max_total_duration_sec": float(config.policies.max_total_duration_sec),
        "retries.max": float(config.retries.max),
        "concurrency.max_workers": float(config.concurrency.max_workers),
    }


def _path(root: str, path: str) -> str:
    """A path as it is meant, relative to the workspace where it lies in it."""
    whole = posixpath.normpath(posixpath.join(root, path))
    below = posixpath.relpath(whole, root)
    return whole if below == ".." or below.startswith("../") else below


def _covered(item: str, before: Iterable[str]) -> bool:
    """Whether a path lies in one that may be read, or written, already."""
    kind, _, path = item.partition(": ")
    if kind not in ("read", "write"):
        return False
    kinds = ("read: ", "write: ") if kind == "read" else ("write: ",)
    above = (other.partition(": ")[2] for other in before if other.startswith(kinds))
    return any(path == one or path.startswith(f"{one}/") or (one == "." and not path.startswith("/")) for one in above)


# --- the record -------------------------------------------------------------------------------------------------------


def _write(workspace: Path, powers: Powers, files: dict[str, str]) -> None:
    known = Accepted(workspace=shown(os.path.realpath(workspace)), powers=powers, files=files)
    Registry().write(ACCEPTED, workspace, known)


def _require(workspace: Path, found: Offer) -> None:
    if found.first:
        what = f"the configuration of {shown(workspace)} was never accepted by this user, so nothing is run by it"
        raise NotAccepted(what)
    if found.new != Powers():
        raise _widened(workspace, found.new)


def _widened(workspace: Path, new: Powers) -> NotAccepted:
    return NotAccepted(f"the configuration of {shown(workspace)} asks for more than was accepted{_first(new)}")


def _first(new: Powers) -> str:
    new_lines = [" ".join(line.split()) for line in lines(new)]
    return f": {'; '.join(new_lines[:4])}{'; …' if len(new_lines) > 4 else ''}" if new_lines else ""


def _joined(parts: list[str]) -> str:
    text, count = "", 0
    for part in parts:
        if text and len(text) + len(part) > LINE_CHARS_MAX:
            return f"{text}, and {len(parts) - count} more (pmagent trust --format json)"
        shown = part if len(part) <= LINE_CHARS_MAX else f"{part[:LINE_CHARS_MAX]}… (cut)"
        text, count = f"{text}, {shown}" if text else shown, count + 1
    return text
