"""Settings: flags over ``PMAGENT_*`` over ``.pmagent/config.toml`` over defaults, and where each came from
(docs/design.md §11.1).

A setting ``[kernel] phase`` in the file is ``PMAGENT_KERNEL_PHASE`` in the environment. An unknown setting is an
error: an unknown key names the nearest one that exists. The tables ``[checks]`` and ``[guards]`` have names of their
own, and no variables (``config_programs``); nor have the settings in ``_FILE_ONLY``.
"""

from __future__ import annotations

import shlex
import threading
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from pmagent.workspace.layout import workspace_around
from pmagent.workspace.settings_programs import TABLES, ConfigError, Programs, programs

FILE: Final = ".pmagent/config.toml"
PREFIX: Final = "PMAGENT_"
WORKSPACE: Final = "PMAGENT_WORKSPACE"


Word = Annotated[str, Meta(min_length=1, pattern=r"\S")]
Usd = Annotated[float, Meta(ge=0, le=1_000_000)]


class KernelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that ``pmagent kernel refresh`` cannot compute, and what the configured checks and guards may have."""

    phase: Annotated[Word | int | None, Meta(description="the phase that the surfaces name")] = None
    last_completed_phase: Annotated[Word | int | None, Meta(description="the phase before it")] = None
    check_seconds: Annotated[float, Meta(gt=0, le=600, description="seconds for one configured check or guard")] = 60.0
    check_reads: Annotated[
        str, Meta(description="folders that they may read besides the workspace, as PATH separates them")
    ] = ""
    surfaces: Annotated[
        Literal["required", "none"], Meta(description="none: this workspace has no kernel surfaces")
    ] = "required"


class CliSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How commands talk."""

    color: Annotated[
        Literal["auto", "always", "never"], Meta(description="colour on the screen; auto: on a terminal")
    ] = "auto"
    tail_lines: Annotated[int, Meta(ge=0, le=1_000_000, description="how many events `pmagent log tail` shows")] = 20


class ReasoningSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The engine that answers the reasoning programs, and how much a run may take. Engines, limits and their
    defaults are those of ``EngineName`` and ``ModelLimits``; a test holds them together, for commands that only
    read import no contracts."""

    engine: Annotated[
        Literal["rules", "langchain", "dspy"], Meta(description="who answers: rules, langchain or dspy")
    ] = "rules"
    model: Annotated[str, Meta(description="the model of langchain or dspy, as provider:model")] = ""
    fallback: Annotated[bool, Meta(description="whether the rules answer, as DEGRADED, when the engine cannot")] = False
    attempts: Annotated[int, Meta(ge=1, le=10, description="calls for one question")] = 3
    call_seconds: Annotated[float, Meta(gt=0, le=600, description="seconds for one call")] = 60.0
    calls: Annotated[int, Meta(ge=1, le=1000, description="calls in one run")] = 16
    concurrency: Annotated[int, Meta(ge=1, le=16, description="calls of one run at once")] = 2
    seconds: Annotated[float, Meta(gt=0, le=86_400, description="seconds for one run's questions")] = 300.0
    tokens: Annotated[int, Meta(ge=1, le=100_000_000, description="tokens for one run, in and out")] = 200_000
    cost_usd: Annotated[Usd | None, Meta(description="US dollars for one run; needs the prices")] = None
    input_usd: Annotated[Usd | None, Meta(description="the model's price for a million tokens in")] = None
    output_usd: Annotated[Usd | None, Meta(description="the model's price for a million tokens out")] = None


class AuditSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The judge of an audit, and how much an audit may take. Limits are those of ``AuditLimits``, and, for models, of
    ``ModelLimits``, with defaults that let three judges go through a rubric of forty criteria twice; a test holds them
    together."""

    model: Annotated[str, Meta(description="the judges' model, as provider:model; without one, the rules")] = ""
    vision_model: Annotated[str, Meta(description="the model that looks at the report's images")] = ""
    rubric: Annotated[str, Meta(description="the rubric's file; without one, the one that comes along")] = ""
    clone_bytes: Annotated[int, Meta(ge=1, description="bytes of a clone")] = 2 * 2**30
    clone_seconds: Annotated[float, Meta(gt=0, le=3_600, description="seconds for cloning")] = 600.0
    files: Annotated[int, Meta(ge=1, description="files of a repository")] = 50_000
    file_bytes: Annotated[int, Meta(ge=1, description="bytes of a file that is read")] = 8 * 2**20
    survey_seconds: Annotated[float, Meta(gt=0, le=1_800, description="seconds for reading a clone")] = 900.0
    survey_memory: Annotated[int, Meta(ge=2**26, description="bytes of memory for that")] = 4 * 2**30
    pdf_bytes: Annotated[int, Meta(ge=1, description="bytes of a report")] = 256 * 2**20
    pdf_pages: Annotated[int, Meta(ge=1, description="pages of a report")] = 2_000
    pdf_seconds: Annotated[float, Meta(gt=0, le=1_800, description="seconds for reading a report")] = 300.0
    pdf_memory: Annotated[int, Meta(ge=2**26, description="bytes of memory for that")] = 2 * 2**30
    pictures: Annotated[int, Meta(ge=0, le=200, description="images of a report that are taken out")] = 20
    attempts: Annotated[int, Meta(ge=1, le=10, description="calls for one opinion")] = 8
    patience_minutes: Annotated[float, Meta(ge=0, le=1_440, description="minutes of waiting for a provider")] = 10.0
    call_seconds: Annotated[float, Meta(gt=0, le=600, description="seconds for one call")] = 120.0
    calls: Annotated[int, Meta(ge=1, le=1000, description="calls in one audit")] = 500
    concurrency: Annotated[int, Meta(ge=1, le=16, description="calls of one audit at once")] = 4
    seconds: Annotated[float, Meta(gt=0, le=86_400, description="seconds for one audit's questions")] = 3600.0
    tokens: Annotated[int, Meta(ge=1, le=100_000_000, description="tokens for one audit, in and out")] = 3_000_000
    cost_usd: Annotated[Usd | None, Meta(description="US dollars for one audit; needs the prices")] = None
    input_usd: Annotated[Usd | None, Meta(description="the judges' model's price for a million tokens in")] = None
    output_usd: Annotated[Usd | None, Meta(description="the judges' model's price for a million tokens out")] = None


class PlaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keyboard device, who operates it, and how proposals come about. A daemon or a command goes by its own
    environment and the workspace's file: nobody who only talks to a daemon loosens them. Policies and
    limits are those of ``CredentialPolicy`` and ``ModelLimits``; a test holds them together."""

    device: Annotated[
        str, Meta(description="the device's port, or worker:ROLE/NAME; without one it is found by its USB identity")
    ] = ""
    device_serial: Annotated[str, Meta(description="the USB serial number that the device must have")] = ""
    layout: Annotated[
        Literal["", "us", "uk", "de", "fr", "es", "it", "se", "no", "dk", "fi", "ch-de", "ch-fr"],
        Meta(description="the typed-on machine's keyboard layout; without one only a practice device types"),
    ] = ""
    name: Annotated[str, Meta(max_length=64, description="the typed-on machine's name, shown with each proposal")] = ""
    operator: Annotated[str, Meta(description="who operates, without --operator; else the login name")] = ""
    credentials: Annotated[
        Literal["refuse", "acknowledge"],
        Meta(description="what holds credentials: refuse, or acknowledge (5 s, and the operator says so)"),
    ] = "refuse"
    proposal_seconds: Annotated[
        float, Meta(gt=0, le=86_400, description="seconds for which a proposal stands open")
    ] = 300.0
    two_persons: Annotated[bool, Meta(description="whether who asked for it may not approve it")] = False
    frames: Annotated[str, Meta(description="the folder of pictures, or the video device, with frames")] = ""
    keep_frames: Annotated[bool, Meta(description="whether the pictures of frames are kept")] = True
    model: Annotated[str, Meta(description="the model that proposes from frames, as provider:model")] = ""
    attempts: Annotated[int, Meta(ge=1, le=10, description="calls for one question")] = 3
    call_seconds: Annotated[float, Meta(gt=0, le=600, description="seconds for one call")] = 60.0
    calls: Annotated[int, Meta(ge=1, le=1000, description="calls for one proposal")] = 16
    seconds: Annotated[float, Meta(gt=0, le=86_400, description="seconds for one proposal's questions")] = 300.0
    tokens: Annotated[int, Meta(ge=1, le=100_000_000, description="tokens for one proposal, in and out")] = 200_000


class ConsoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator console that the daemon serves."""

    enabled: Annotated[bool, Meta(description="whether `pmagent up` serves the console")] = True
    listen: Annotated[
        Literal["loopback", "unix"],
        Meta(description="where: a loopback port, or the socket .pmagent/data/run/console/console.sock"),
    ] = "loopback"
    port: Annotated[
        int, Meta(ge=0, le=65_535, description="the loopback port; 0: any, and the same one from then on")
    ] = 0
    hours: Annotated[float, Meta(gt=0, le=720, description="hours after which one has to sign in again")] = 12.0
    passkeys: Annotated[
        Literal["off", "offered", "required"],
        Meta(description="whether operators may sign in with passkeys, or need one to approve; extra webauthn"),
    ] = "off"


Variable = Annotated[str, Meta(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")]


class NotificationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where notifications of alerts and requests go. A secret is never a setting: a setting names its variable in the
    daemon's environment."""

    webhook: Annotated[str, Meta(description="the address that gets notifications as JSON")] = ""
    webhook_secret_env: Annotated[
        Variable, Meta(description="the variable that holds the key of the webhook's signature")
    ] = ""
    ntfy: Annotated[str, Meta(description="the address of a topic of ntfy")] = ""
    ntfy_token_env: Annotated[Variable, Meta(description="the variable that holds ntfy's access token")] = ""
    slack_env: Annotated[
        Variable, Meta(description="the variable that holds the address of an incoming webhook of Slack")
    ] = ""
    email_to: Annotated[str, Meta(description="e-mail addresses that get notifications, with commas")] = ""
    email_from: Annotated[str, Meta(description="the sender's address; without one, the first of those")] = ""
    smtp: Annotated[str, Meta(description="the mail server, as host:port")] = ""
    smtp_tls: Annotated[
        Literal["starttls", "tls", "none"], Meta(description="how the mail server is reached")
    ] = "starttls"
    smtp_user: Annotated[str, Meta(description="the name for the mail server, if it wants one")] = ""
    smtp_password_env: Annotated[Variable, Meta(description="the variable that holds its password")] = ""
    least: Annotated[
        Literal["urgent", "bad", "warn"], Meta(description="the least severity of alerts that are sent")
    ] = "bad"
    requests: Annotated[bool, Meta(description="whether requests for a decision are sent")] = True
    details: Annotated[bool, Meta(description="whether more than the title is sent")] = False
    link: Annotated[
        str, Meta(description="how the console's addresses begin in notifications; else as it is served")
    ] = ""


class StorageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the evidence lies; ``pmagent.events.evidence`` obeys it."""

    log_dir: Annotated[
        str, Meta(description="the folder of the log and its blobs, from the workspace on; else .pmagent/data")
    ] = ""
    log: Annotated[
        str, Meta(description="the address of a log in PostgreSQL, in place of the folder; without a password")
    ] = ""
    blobs: Annotated[
        str, Meta(description="the place of the blobs in S3, s3://bucket/prefix; else they lie with the log")
    ] = ""
    replicated: Annotated[
        bool, Meta(description="whether an event counts only when a standby of that database has it")
    ] = True


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every setting of a workspace."""

    storage: StorageSettings = StorageSettings()
    kernel: KernelSettings = KernelSettings()
    cli: CliSettings = CliSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    audit: AuditSettings = AuditSettings()
    pla: PlaSettings = PlaSettings()
    console: ConsoleSettings = ConsoleSettings()
    notifications: NotificationSettings = NotificationSettings()


class Setting(msgspec.Struct, frozen=True):
    """A setting as it is looked up: its key ``kernel.phase``, its variable ("": it has none), what it is, and of what
    kind a variable's text is (str, bool, int or float)."""

    key: str
    variable: str
    text: str
    default: Any
    kind: type


class Resolved(msgspec.Struct, frozen=True):
    """The settings that hold, and for each key (``workspace`` too) its value and where it came from; the configured
    checks, and the guards by their normalized names."""

    workspace: Path
    settings: Settings
    origins: dict[str, tuple[Any, str]]
    checks: Programs = {}
    guards: Programs = {}


@cache
def settings_table() -> tuple[Setting, ...]:
    """Every setting, in order."""
    return tuple(
        _setting(section.name, field)
        for section in msgspec.structs.fields(Settings) for field in msgspec.structs.fields(section.type)
    )


def _setting(section: str, field: msgspec.structs.FieldInfo) -> Setting:
    key = f"{section}.{field.name}"
    described = msgspec.inspect.type_info(field.type)
    text = (getattr(described, "extra_json_schema", None) or {}).get("description", "")
    variable = "" if key in _FILE_ONLY else PREFIX + key.replace(".", "_").upper()
    return Setting(key, variable, text, field.default, _kind(described))


_FILE_ONLY: Final = ("storage.log_dir", "storage.log", "storage.blobs", "storage.replicated", "kernel.surfaces")
"""Settings without variables: a variable would give every workspace the same log, or excuse a lack of surfaces that
nobody has accepted."""


def _kind(described: Any) -> type:
    """The value that a text for a setting of this type denotes; the text itself where the type allows one."""
    inner = described.type if isinstance(described, msgspec.inspect.Metadata) else described
    parts = inner.types if isinstance(inner, msgspec.inspect.UnionType) else (inner,)
    bare = {type(part.type if isinstance(part, msgspec.inspect.Metadata) else part) for part in parts}
    for kind, read_as in _READ_AS.items():
        if kind in bare:
            return read_as
    return str


_READ_AS: Final[dict[type, type]] = {
    msgspec.inspect.StrType: str,
    msgspec.inspect.BoolType: bool,
    msgspec.inspect.IntType: int,
    msgspec.inspect.FloatType: float,
}


_SHAPING: Final = threading.Lock()
"""msgspec works out the shape of a type when it first meets it, and crashes where two threads make it do so at once."""


def raw_of(file: Path) -> bytes:
    """The content of the settings' file; b"" where there is none. Raises ConfigError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", "give this user the right to read it") from error


def resolve(workspace_flag: str | None, environ: Mapping[str, str], raw: bytes | None = None) -> Resolved:
    """Look up everything. ``raw``: the file's content, where it has been read already, or is not to count (b""). Raises
    ConfigError."""
    workspace, origin = _workspace(workspace_flag, environ)
    origins: dict[str, tuple[Any, str]] = {"workspace": (str(workspace), origin)}
    file = workspace / FILE
    given, tables = _read(file, raw_of(file) if raw is None else raw)
    merged: dict[str, dict[str, Any]] = {section: dict(values) for section, values in given.items()}
    for setting in settings_table():
        section, name = setting.key.split(".")
        text = environ.get(setting.variable) if setting.variable else None
        if text is not None:
            merged.setdefault(section, {})[name] = _from_text(setting, text)
            origins[setting.key] = (text, setting.variable)
        elif name in given.get(section, {}):
            origins[setting.key] = (given[section][name], FILE)
        else:
            origins[setting.key] = (setting.default, "default")
    try:
        with _SHAPING:
            settings = msgspec.convert(merged, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(*_error_texts(error, file, origins)) from error
    for table, named in tables.items():
        origins |= {f"{table}.{name}": (shlex.join(argv), FILE) for name, argv in named.items()}
    return Resolved(workspace, settings, origins, tables["checks"], tables["guards"])


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """``PMAGENT_*`` variables that mean nothing: probably misspelt."""
    known = {WORKSPACE, f"{PREFIX}FORMAT", *(setting.variable for setting in settings_table())}
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def workspace_of(flag: str | None, environ: Mapping[str, str]) -> Path:
    """The workspace alone, as ``resolve`` finds it; no setting is read. Raises ConfigError when it is no directory."""
    return _workspace(flag, environ)[0]


def _workspace(flag: str | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    if flag is not None:
        path, origin = Path(flag), "--workspace"
    elif environ.get(WORKSPACE):
        path, origin = Path(environ[WORKSPACE]), WORKSPACE
    else:
        return workspace_around(Path.cwd()), "default: found from the current directory"
    if not path.is_dir():
        raise ConfigError(f"the workspace {path} ({origin}) is not a directory", "give a directory that exists")
    return path.absolute(), origin


def _read(file: Path, raw: bytes) -> tuple[dict[str, dict[str, Any]], dict[str, Programs]]:
    """The file's tables of settings, every key of which exists; and its tables of programs. Raises ConfigError."""
    try:
        content = tomllib.loads(raw.decode("utf-8").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        raise ConfigError(f"{file} cannot be read as TOML: {what}", "correct the file") from error
    tables: dict[str, Programs] = {table: programs(file, table, content.pop(table, {})) for table in TABLES}
    known = [setting.key for setting in settings_table()]
    for section, values in content.items():
        if not isinstance(values, dict):
            raise _unknown(file, section, known)
        for name in values:
            if f"{section}.{name}" not in known:
                raise _unknown(file, f"{section}.{name}", known)
    return content, tables


def _unknown(file: Path, key: str, known: list[str]) -> ConfigError:
    section = key.partition(".")[0]
    tables = [f"[{name}]" for name in get_close_matches(section, TABLES, 1, 0.8)]
    near = tables or get_close_matches(key, known, 1, 0.5) or [name for name in known if name.endswith(f".{key}")]
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join((*known, *TABLES))}"
    return ConfigError(f"{file}: there is no setting {key}", hint)


def _from_text(setting: Setting, text: str) -> Any:
    """A variable's text as the setting's own kind."""
    if setting.kind is str:
        return text
    if setting.kind is bool:
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        raise ConfigError(f"{setting.variable} must be true or false, not {text!r}", setting.text)
    try:
        return setting.kind(text)
    except ValueError:
        what = "a whole number" if setting.kind is int else "a number"
        raise ConfigError(f"{setting.variable} must be {what}, not {text!r}", setting.text) from None


_TRUTH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _error_texts(error: msgspec.ValidationError, file: Path, origins: dict[str, tuple[Any, str]]) -> tuple[str, str]:
    """Message and hint: which setting, and from where."""
    what, _, path = str(error).partition(" - at `$.")
    key = path.rstrip("`")
    value, origin = origins.get(key, (None, FILE))
    where = str(file) if origin == FILE else origin
    return f"{where}: {key or 'a setting'} = {value!r}: {what[:1].lower()}{what[1:]}", "pmagent help environment"
