"""The part of ``pmagent doctor`` about guests: which harnesses are connected and how, whether the hooks are in force,
and what can still go past them (docs/guests.md)."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pmagent.actors.guests.definitions import differences
from pmagent.actors.guests.definitions import read as compared
from pmagent.events.errors import PmagentError
from pmagent.guests import codex_trust, definitions
from pmagent.guests.connect import (
    Connection,
    hook_of,
    installed_source,
    left_out,
    read_record,
    trusts,
    user_home,
    version_of,
)  # fmt: skip
from pmagent.guests.harnesses import EVENTS, document_of, names, too_old
from pmagent.workspace.layout import Layout

PAST: Final = {
    "claude": "its settings can switch hooks off before a session begins; files mentioned with @ fire none, nor do "
              "commands and hooks in skills, slash commands and agents' prompts",
    "codex": "typing into a program that runs (write_stdin) fires no hook, nor do hosted searches",
    "gemini": "a project's hooks run only where its user trusts the folder, and calls are known by their input alone",
    "cursor": "there is no transcript to hold a session against, and cloud agents skip hooks at first",
    "copilot": "a hook that is out of time lets the tool run, and subagents may fire none",
    "opencode": "--pure starts without the plugin, and the batch tool fires one hook for many calls",
}
"""Calls that pass the hooks of each harness unseen, whatever their state."""
_GOES_BY: Final = {
    "server": "MCP server(s)", "hook": "hook(s) of others", "plugin": "plugin(s)", "rules": "list(s) of rules",
}  # fmt: skip
_WALL: Final = "only pmagent guest run, or managed settings, hold against that"
_VARIABLES: Final = ("PATH", "LD_", "PYTHON", "BASH_ENV", "ENV", "CLAUDE_CODE_SIMPLE", "CLAUDE_CONFIG_DIR")
"""Variables of a settings file's ``env`` that reach hooks, and change what is started."""


class Finding(NamedTuple):
    """Faults, certain or possible, and their remedies."""

    state: Literal["warn", "fail"]
    text: str
    remedy: str


def look(layout: Layout, environ: Mapping[str, str]) -> tuple[Literal["ok", "warn", "fail"], str, str]:
    """The state of all connections, in words, and the remedy. Raises PmagentError, OSError."""
    connections = read_record(layout).connections
    waiting = len(list(layout.spool.glob("*.json"))) if layout.spool.is_dir() else 0
    left = f"; {waiting:,} facts wait in the spool for a daemon" if waiting else ""
    if not connections:
        return "ok", f"no agent's harness is connected{left}", "pmagent connect claude" if waiting else ""
    found = [finding for one in connections for finding in _findings(layout, one, environ)]
    how = ", ".join(f"{one.harness} ({one.scope}, {one.mode}{f', {one.version}' if one.version else ''})"
                    for one in connections)  # fmt: skip
    harnesses = list(dict.fromkeys(one.harness for one in connections))
    also = [text for name in harnesses if (text := _goes_by(layout, name, environ))]
    past = "past the hooks: " + ", ".join(f"{name}: {PAST[name]}" for name in harnesses)
    text = "; ".join([f"connected: {how}", *also, *(one.text for one in found), past, _WALL])
    state: Literal["ok", "warn", "fail"] = "fail" if any(one.state == "fail" for one in found) else "warn"
    return state if found else "ok", text + left, "; ".join(dict.fromkeys(one.remedy for one in found))


def _goes_by(layout: Layout, harness: str, environ: Mapping[str, str]) -> str:
    """The definitions of a harness, in words; "": none."""
    counts = Counter[str](one.kind for one in definitions.read(harness, layout.workspace, environ, hook_of(layout)))
    said = ", ".join(f"{counts[kind]} {word}" for kind, word in _GOES_BY.items() if counts[kind])
    return f"{harness} also goes by {said}" if said else ""


def _changed(layout: Layout, harness: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Definitions that are not what the log says of the last session."""
    last = definitions.recorded(layout.store, harness)
    if last is None:
        return
    now = definitions.read(harness, layout.workspace, environ, hook_of(layout))
    for one in differences(compared(now, compared(last, None))):
        if one.widens:
            what = f"{harness}'s {one.kind} {one.name} was {one.how} since the last session ({one.text})"
            yield Finding("warn", what, f"look at {one.path}")


def _findings(layout: Layout, one: Connection, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield from _changed(layout, one.harness, environ)
    hook, again = hook_of(layout), f"pmagent connect {one.harness} --{one.scope} --{one.mode}"
    try:
        if Path(hook.file).read_bytes() != installed_source():
            yield Finding("warn", "the hook is that of another version of pmagent", again)
    except FileNotFoundError:
        yield Finding("fail", f"the hook {hook.file} is gone", again)
    path = Path(one.files[0].path)
    text = path.read_text("utf-8", "replace") if path.is_file() else ""
    if path.suffix == ".json":
        yield from _of_json(one, path, text, layout, environ, again)
    elif hook.file not in text:
        yield Finding("fail", f"{path} does not start the hook any more", again)
    if one.harness == "claude":
        yield from _of_claude(layout, environ)
    if one.harness == "gemini":
        yield from _of_gemini(layout, one, environ)
    if one.harness == "codex" and one.scope != "managed":
        yield from _of_codex(layout, one, environ, again)
    version = version_of(one.harness, environ)
    if one.mode == "enforce" and too_old(one.harness, version):
        yield Finding("fail", f"{one.harness} {version} lets tools run when a hook fails", f"update {one.harness}")


def _of_json(
    one: Connection, path: Path, text: str, layout: Layout, environ: Mapping[str, str], again: str
) -> Iterator[Finding]:
    try:
        hooks: Any = document_of(text).get("hooks", {})
        gone = [event for event in EVENTS[one.harness] if not names(hooks.get(event, []), hook_of(layout))]
        faults = left_out(one.harness, text, environ)
    except (ValueError, AttributeError):
        yield Finding("fail", f"{path} is not understood, so none of its hooks runs", f"mend it, or {again}")
        return
    for fault in faults:
        yield Finding("fail", f"Claude Code leaves out all of {path}, in silence: {fault}", "mend that")
    if gone:
        yield Finding("fail", f"{path} does not start the hook at {', '.join(gone)}", again)
    if path.stat().st_mode & 0o022:
        yield Finding("warn", f"{path} may be written by others", f"chmod go-w {path}")


def _of_claude(layout: Layout, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Entries in its settings files that switch hooks off, or reach into them."""
    workspace, user = layout.workspace, user_home(environ)
    folder = Path(environ.get("CLAUDE_CONFIG_DIR") or user / ".claude")
    files = [folder / "settings.json", *(workspace / ".claude" / f"settings{kind}.json" for kind in ("", ".local"))]
    for path in (*files, Path("/etc/claude-code/managed-settings.json")):
        if not path.is_file():
            continue
        try:
            document = document_of(path.read_text("utf-8-sig"))
            env = document.get("env", {})
        except ValueError:
            yield Finding("fail", f"{path} is not understood: Claude Code leaves all of it out, silently", "mend it")
            continue
        if document.get("disableAllHooks"):
            yield Finding("fail", f"{path} switches all hooks off", f"take disableAllHooks out of {path}")
        for name in env if isinstance(env, dict) else ():
            if name.startswith(_VARIABLES):
                yield Finding("warn", f"{path} sets {name}, which reaches hooks", f"take {name} out of its env")
    for name in ("CLAUDE_CODE_SIMPLE", "CLAUDE_CONFIG_DIR"):
        if environ.get(name):
            yield Finding("warn", f"{name} is set here: Claude Code may read other settings, or none", f"unset {name}")


def _of_gemini(layout: Layout, one: Connection, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether it runs a project's hooks, and entries that switch ours off; a project's count where it is trusted."""
    trusted = trusts(layout.workspace, environ)
    if one.scope == "project" and not trusted:
        what = f"Gemini CLI skips the hooks of {layout.workspace}, which its user does not trust"
        yield Finding("fail", what, f"start gemini in {layout.workspace}, and trust it")
    for folder in (user_home(environ), *([layout.workspace] if trusted else ())):
        path = folder / ".gemini/settings.json"
        try:
            switches = document_of(path.read_text("utf-8-sig")).get("hooksConfig", {}) if path.is_file() else {}
            off = switches.get("enabled", True) is not True or "pmagent" in switches.get("disabled", ())
        except (ValueError, AttributeError, TypeError):
            yield Finding("fail", f"{path} is not understood", "mend it")
            continue
        if off:
            yield Finding("fail", f"{path} switches the hook off", f"take hooksConfig out of {path}")


def _of_codex(layout: Layout, one: Connection, environ: Mapping[str, str], again: str) -> Iterator[Finding]:
    config = Path(environ.get("CODEX_HOME") or user_home(environ) / ".codex") / "config.toml"
    try:
        document = tomllib.loads(config.read_text("utf-8")) if config.is_file() else {}
    except (ValueError, UnicodeDecodeError):
        yield Finding("fail", f"{config} is not understood", "mend it")
        return
    if document.get("features", {}).get("hooks") is False:
        yield Finding("fail", f"{config} switches hooks off", "take hooks = false out of [features]")
    program = shutil.which("codex", path=environ.get("PATH"))
    if program is None:
        yield Finding("warn", "codex is not found here: whether it trusts the hook is not known", "type /hooks in it")
        return
    try:
        left = codex_trust.skipped(program, environ, layout.workspace, Path(one.files[0].path), hook_of(layout))
    except PmagentError as error:
        yield Finding("warn", error.message, error.hint)
        return
    if left:
        yield Finding("fail", f"Codex skips the hook at {', '.join(left)}: nobody has trusted it as it is now", again)
