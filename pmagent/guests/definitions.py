"""A harness's definitions beside our hooks: MCP servers, hooks of others, plugins, rules (docs/guests.md).

Their files are read when a session starts, and again when they have changed. The definitions of MCP tools themselves
(their names, descriptions and forms) are told to no hook, and stand in no file: a server may change them as it runs.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pmagent.actors.guests.definitions import Read
from pmagent.actors.guests.definitions import read as compared
from pmagent.contracts.guest_calls import Definition
from pmagent.contracts.guests import NAME_CHARS_MAX, TEXT_CHARS_MAX
from pmagent.contracts.payload import typed
from pmagent.events.atomic import read_plain
from pmagent.events.errors import NotFound
from pmagent.events.reader import events_of_types
from pmagent.events.store import LogStore
from pmagent.guests.harnesses import Hook, names
from pmagent.workspace.layout import Layout

DEFINITIONS_MAX: Final = 500
FILE_BYTES_MAX: Final = 8 << 20
LOOK_SECONDS: Final = 1.0
"""They are looked at so often while calls come."""
_TEXT_CHARS: Final = TEXT_CHARS_MAX // 20

Kind = Literal["server", "hook", "plugin", "rules"]
_KEYS: Final[Mapping[str, Kind]] = {
    "mcpServers": "server", "mcp_servers": "server", "mcp": "server", "hooks": "hook", "enabledPlugins": "plugin",
    "plugin": "plugin", "permissions": "rules", "permission": "rules", "tools": "rules", "excludeTools": "rules",
}  # fmt: skip
"""Keys of the harnesses' files, and what they define."""
_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": (
        "~claude/settings.json", "~/.claude.json", "~claude/plugins/installed_plugins.json", ".claude/settings.json",
        ".claude/settings.local.json", ".mcp.json", "/etc/claude-code/managed-settings.json",
        "/etc/claude-code/managed-mcp.json",
    ),
    "codex": ("~codex/config.toml", "~codex/hooks.json", ".codex/config.toml", ".codex/hooks.json"),
    "gemini": ("~/.gemini/settings.json", ".gemini/settings.json"),
    "cursor": ("~/.cursor/mcp.json", "~/.cursor/hooks.json", ".cursor/mcp.json", ".cursor/hooks.json"),
    "copilot": ("~/.copilot/mcp-config.json", "~/.copilot/config.json"),
    "opencode": ("~config/opencode/opencode.json", "opencode.json"),
}  # fmt: skip
"""Where they stand: in the workspace, this user's home, or on the machine."""
_PROMPTS: Final = ("skills/*/SKILL.md", "commands/*.md", "commands/*/*.md", "agents/*.md")
"""Prompts of Claude Code, which may hold hooks, servers, and lines that a shell runs, of which our hook is not told."""
_RUNS: Final = re.compile(r"^(?:hooks|mcpServers):|!`[^`\n]+`|^```!.*", re.MULTILINE)
_PLUGIN: Final = (".claude-plugin/plugin.json", "hooks/hooks.json", ".mcp.json")
"""The files of a plugin folder that start something, or say what it is."""


def files(harness: str, workspace: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files that the harness goes by, there or not."""
    home = environ.get("HOME", "/")
    folders = {
        "~claude": environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude",
        "~codex": environ.get("CODEX_HOME") or f"{home}/.codex",
        "~config": environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "~": home,
    }  # fmt: skip

    def placed(name: str) -> Path:
        first, _, rest = name.partition("/")
        return Path(folders[first]) / rest if first in folders else workspace / name

    found = [placed(name) for name in _FILES.get(harness, ())]
    if harness == "claude":
        own = (placed("~claude"), workspace / ".claude")
        found += islice((path for folder in own for name in _PROMPTS for path in sorted(folder.glob(name))),
                        DEFINITIONS_MAX)  # fmt: skip
    return [*found, *(plugin / name for file in found if file.name == "installed_plugins.json"
                      for plugin in _plugins(file) for name in _PLUGIN)]  # fmt: skip


def read(harness: str, workspace: Path, environ: Mapping[str, str], ours: Hook) -> list[Definition]:
    """The definitions of the harness, without the hook of ``ours``, in the order of kinds, names and paths. A file that
    cannot be read, or is not understood, is a definition of its own: whoever changes it changes that."""
    found: dict[tuple[str, str, str], Definition] = {}
    for path in files(harness, workspace, environ):
        for one in _of_file(path, workspace, ours):
            found[one.kind, one.name, one.path] = one
    return [found[key] for key in sorted(found)][:DEFINITIONS_MAX]


def _plugins(installed: Path) -> list[Path]:
    """The folders of Claude Code's plugins."""
    document = _document(installed)
    plugins = document.get("plugins") if isinstance(document, dict) else None
    found = list[Path]()
    for entries in plugins.values() if isinstance(plugins, dict) else ():
        some = [one.get("installPath") for one in (entries if isinstance(entries, list) else [entries])
                if isinstance(one, dict)]  # fmt: skip
        found += [Path(where) for where in some if isinstance(where, str) and where.startswith("/")]
    return sorted(found)[:DEFINITIONS_MAX]


def _of_file(path: Path, workspace: Path, ours: Hook) -> Iterator[Definition]:
    if path.suffix == ".md":
        yield from _of_prompt(path)
        return
    document = _document(path)
    if document is None:
        return
    if not isinstance(document, dict):
        yield _made("rules", "the file is not understood", path, document)
        return
    if path.name == "plugin.json":
        yield _made("plugin", str(document.get("name", path.parents[1].name)), path, document)
    own = document.get("projects")
    own = own.get(str(workspace)) if isinstance(own, dict) else None
    for part in (document, own if isinstance(own, dict) else {}):
        for key, kind in _KEYS.items():
            if key in part:
                yield from _of_key(kind, part[key], path, ours)


def _of_prompt(path: Path) -> Iterator[Definition]:
    """A prompt that runs something; of others nothing is said. One that is too large is as good as one that does."""
    try:
        raw = read_plain(path, FILE_BYTES_MAX)
    except OSError:
        return
    runs = _RUNS.findall(text := raw.decode("utf-8", "replace")) if len(raw) <= FILE_BYTES_MAX else ["too large"]
    if runs:
        name = path.parent.name if path.name == "SKILL.md" else path.stem
        made = _made("hook", f"in the prompt {name}", path, text)
        yield msgspec.structs.replace(made, text="; ".join(runs)[:_TEXT_CHARS])


def _of_key(kind: Kind, value: Any, path: Path, ours: Hook) -> Iterator[Definition]:
    if kind == "hook" and isinstance(value, dict):
        for event, entries in value.items():
            for entry in entries if isinstance(entries, list) else [entries]:
                if not names(entry, ours):
                    yield _made("hook", f"{event} {_digest(entry)[:8]}", path, entry)
    elif kind in ("server", "plugin") and isinstance(value, dict):
        for name, entry in value.items():
            yield _made(kind, str(name), path, entry)
    elif value:
        yield _made(kind, kind, path, value)


def _made(kind: Kind, name: str, path: Path, value: Any) -> Definition:
    plain = name.replace("\n", " ")[:NAME_CHARS_MAX]
    return Definition(kind=kind, name=plain, path=str(path), digest=_digest(value), text=_said(value)[:_TEXT_CHARS])


def _digest(value: Any) -> str:
    return sha256(msgspec.json.encode(_without_values(value), order="sorted")).hexdigest()


def _without_values(value: Any) -> Any:
    """Without the values of variables and headers, which may be secrets, and change with them."""
    if isinstance(value, dict):
        return {
            str(key): sorted(map(str, one)) if key in ("env", "headers", "http_headers") and isinstance(one, dict)
            else _without_values(one) for key, one in value.items()
        }  # fmt: skip
    if isinstance(value, list):
        return [_without_values(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _said(value: Any) -> str:
    """The command or address, as somebody reads it."""
    if isinstance(value, dict):
        words = [value.get("command"), *(value["args"] if isinstance(value.get("args"), list) else ())]
        if any(words):
            parts = [part for word in words if word for part in (word if isinstance(word, list) else [word])]
            return " ".join(map(str, parts))
        for key in ("url", "httpUrl", "hooks", "version"):
            if value.get(key):
                return _said(value[key])
        return ""
    if isinstance(value, list):
        return "; ".join(said for said in map(_said, value) if said)
    return value if isinstance(value, str) else ""


def _document(path: Path) -> Any:
    """The file's content; None where there is none, and a digest of one that is not understood."""
    try:
        if not path.is_file() or path.stat().st_size > FILE_BYTES_MAX:
            return "too large" if path.is_file() else None
        raw = path.read_bytes()
    except OSError as error:
        return error.strerror
    try:
        return tomllib.loads(raw.decode()) if path.suffix == ".toml" else json.loads(raw)
    except (ValueError, RecursionError):
        return sha256(raw).hexdigest()


class Watch:
    """How the files of each harness stood when they were read last."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[object, ...]] = {}
        self._looked = 0.0

    def due(self, *, at_once: bool) -> bool:
        """Whether they are to be looked at."""
        if not at_once and self.rests:
            return False
        self._looked = time.monotonic()
        return True

    @property
    def rests(self) -> bool:
        """Whether they were looked at a moment ago."""
        return time.monotonic() < self._looked + LOOK_SECONDS

    def news(self, harness: str, layout: Layout, last: Read | None) -> list[Definition] | None:
        """The definitions of the harness; None where they are as they were read ``last``."""
        workspace, environ = layout.workspace, os.environ
        marks = marks_of(files(harness, workspace, environ))
        if last is not None and self._marks.get(harness) == marks:
            return None
        found = read(harness, workspace, environ, hook_file(layout))
        self._marks[harness] = marks
        return found if last is None or compared(found, last).now != last.now else None


def recorded(store: LogStore, harness: str) -> list[Definition] | None:
    """The definitions that were recorded last; None: none ever were. Raises CorruptLog."""
    found = None
    try:
        with closing(store.reader()) as log:
            for stored in events_of_types(log, 1, ("guest.definitions_read",)):
                data = typed(stored, store.blobs()).data
                found = data.definitions if data.harness == harness else found
    except NotFound:
        return None
    return found


def hook_file(layout: Layout) -> Hook:
    """The workspace's hook, by which entries of ours are known."""
    return Hook(sys.executable, str(layout.home / "hook.py"), str(layout.home))


def marks_of(paths: Iterable[str | Path]) -> tuple[object, ...]:
    """How these files stand: another content has another mark."""
    return tuple(map(_mark, paths))


def _mark(path: str | Path) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def file_digest(path: str) -> str:
    """The SHA-256 of a file's beginning; "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return sha256(file.read(FILE_BYTES_MAX)).hexdigest()
    except (OSError, ValueError):
        return ""
