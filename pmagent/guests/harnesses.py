"""How each harness is told to start the hook: the file, the events, the form of an entry. It reads templates, no more.

Sources: https://code.claude.com/docs/en/hooks, https://learn.chatgpt.com/docs/hooks,
https://geminicli.com/docs/hooks/reference, https://cursor.com/docs/hooks,
https://docs.github.com/en/copilot/reference/hooks-reference, https://opencode.ai/docs/plugins;
and, of Claude Code and Codex, the programs themselves.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any, Final, Literal

import msgspec

from pmagent import __version__

Mode = Literal["observe", "enforce"]
Scope = Literal["user", "project", "managed"]

SPARE_SECONDS: Final = 35
"""A harness waits so much longer than the daemon may: the hook's own deadlines end first, and they refuse."""
TOLD_SECONDS: Final = 10
"""The timeout of an event that nobody waits for."""

EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "claude": (
        "SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop",
        "ConfigChange", "SessionEnd",
    ),
    "codex": ("SessionStart", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "SessionEnd"),
    "gemini": ("SessionStart", "BeforeTool", "AfterTool", "SessionEnd"),
    "cursor": ("sessionStart", "preToolUse", "postToolUse", "postToolUseFailure", "sessionEnd"),
    "copilot": ("SessionStart", "PreToolUse", "PostToolUse", "SessionEnd"),
    "opencode": ("session.created", "tool.execute.before", "tool.execute.after", "session.ended"),
}  # fmt: skip
GATES: Final = frozenset({"PreToolUse", "ConfigChange", "BeforeTool", "preToolUse", "tool.execute.before"})

OLDEST: Final = {"claude": (2, 1, 295), "codex": (0, 124, 0)}
"""Claude Code takes ``onFailure`` from this version on, Codex runs hooks: earlier ones are refused in ``enforce``."""


@lru_cache(maxsize=64)
def too_old(harness: str, version: str) -> bool:
    """Whether a harness of this version cannot be trusted to refuse; "": its version is not known."""
    return bool(version) and tuple(int(part) for part in re.findall(r"\d+", version)) < OLDEST.get(harness, ())


class Hook(msgspec.Struct, frozen=True):
    """The command that harnesses start: the interpreter, the hook's file, and the workspace's ``.pmagent/data``."""

    python: str
    file: str
    data: str

    def words(self, harness: str, event: str, mode: Mode, wait: int) -> list[str]:
        """The command's words."""
        return [self.python, "-I", "-S", self.file, harness, event, mode, str(wait), self.data]


def place(harness: str, scope: Scope, workspace: Path, home: Path, environ: Mapping[str, str]) -> Path | None:
    """The file that makes a harness start the hook; None where it has none for this scope. In a project it is a file
    that people do not share, where there is one: it names paths of this machine."""
    project, user = workspace, home
    match harness, scope:
        case "claude", "project":
            return project / ".claude/settings.local.json"
        case "claude", "user":
            return Path(environ.get("CLAUDE_CONFIG_DIR") or user / ".claude") / "settings.json"
        case "claude", "managed":
            return Path("/etc/claude-code/managed-settings.d/50-pmagent.json")
        case "codex", "project":
            return project / ".codex/hooks.json"
        case "codex", "user":
            return Path(environ.get("CODEX_HOME") or user / ".codex") / "hooks.json"
        case "codex", "managed":
            return Path("/etc/codex/requirements.toml")
        case "gemini" | "cursor", "project" | "user":
            name = "settings.json" if harness == "gemini" else "hooks.json"
            return (project if scope == "project" else user) / f".{harness}" / name
        case "copilot", "project":
            return project / ".github/hooks/pmagent.json"
        case "copilot", "user":
            return user / ".copilot/hooks/pmagent.json"
        case "opencode", "project":
            return project / ".opencode/plugin/pmagent.js"
        case "opencode", "user":
            return Path(environ.get("XDG_CONFIG_HOME") or user / ".config") / "opencode/plugin/pmagent.js"
    return None


def settings_files(workspace: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files in which hooks stand, or are switched off, of all harnesses: there or not."""
    home = environ.get("HOME", "")
    scopes: tuple[Scope, ...] = ("user", "project", "managed") if home.startswith("/") else ("project", "managed")
    found = [place(name, scope, workspace, Path(home), environ) for name in EVENTS for scope in scopes]
    found.append(workspace / ".claude/settings.json")
    made = [one for one in found if one is not None]
    return [*made, *(one.with_name("config.toml") for one in made if one.name == "hooks.json")]


def entries(harness: str, mode: Mode, wait: int, hook: Hook) -> dict[str, dict[str, Any]]:
    """For each event, the entry of its list under ``hooks``."""
    made = {}
    for event in EVENTS[harness]:
        seconds = wait + SPARE_SECONDS if event in GATES else TOLD_SECONDS
        words = hook.words(harness, event, mode, wait)
        line = _line(words, mode)
        match harness:
            case "claude" if mode == "enforce":  # no shell between, and each failure refuses
                handler = {"type": "command", "command": words[0], "args": words[1:], "timeout": seconds}
                if event in GATES:
                    handler["onFailure"] = "block"
            case "claude" | "codex":
                handler = {"type": "command", "command": line, "timeout": seconds}
            case "gemini":
                handler = {"type": "command", "name": "pmagent", "command": line, "timeout": seconds * 1000}
            case "cursor":
                handler = {"command": line, "timeout": seconds}
                if mode == "enforce" and event in GATES:
                    handler["failClosed"] = True
            case _:
                handler = {"type": "command", "bash": line, "timeoutSec": seconds}
        if harness in ("cursor", "copilot"):
            made[event] = handler
        elif event in GATES - {"ConfigChange"} or "Tool" in event:
            made[event] = {"matcher": "*", "hooks": [handler]}
        else:
            made[event] = {"hooks": [handler]}
    return made


def settings(harness: str, mode: Mode, wait: int, hook: Hook) -> dict[str, Any]:
    """The whole content of a settings file that holds nothing else."""
    version = {"version": 1} if harness in ("cursor", "copilot") else {}
    return {**version, "hooks": {event: [entry] for event, entry in entries(harness, mode, wait, hook).items()}}


def _line(words: list[str], mode: Mode) -> str:
    """A shell line. In ``observe`` it succeeds whatever happens; in ``enforce`` it succeeds or refuses: many harnesses
    let a tool run when its hook is missing or is killed."""
    line = shlex.join(words)
    if mode == "observe":
        return f"test -r {shlex.quote(words[3])} && {line}; exit 0"
    ended = 'echo "pmagent-hook ended with exit code $s: pmagent doctor looks closer" >&2'
    return f"{line}; s=$?; case $s in 0|2) exit $s;; esac; {ended}; exit 2"


def requirements(mode: Mode, wait: int, hook: Hook) -> str:
    """Codex's managed settings: hooks that run without a step of trust, and that nobody switches off."""
    lines = ["[features]", "hooks = true", "", "[hooks]", f"managed_dir = {json.dumps(hook.data)}"]
    for event, entry in entries("codex", mode, wait, hook).items():
        lines += ["", f"[[hooks.{event}]]", *_toml(entry, skip="hooks")]
        lines += [f"[[hooks.{event}.hooks]]", *_toml(entry["hooks"][0])]
    return "\n".join(lines) + "\n"


def _toml(values: Mapping[str, Any], skip: str = "") -> list[str]:
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if key != skip]


def plugin(mode: Mode, wait: int, hook: Hook) -> str:
    """A plugin of opencode: it starts the hook, and a refusal is an error, which keeps the tool from running. A
    subagent has a session of its own there, which is told as part of that which began it."""
    refuse = 'throw new Error(done.stderr || `pmagent-hook ended with ${done.error || done.signal || done.status}`)'
    template = Template(Path(__file__).with_name("templates").joinpath("opencode.js").read_text("utf-8"))
    words = {event: json.dumps(hook.words("opencode", event, mode, wait)) for event in EVENTS["opencode"]}
    return template.substitute(
        {event.rpartition(".")[2]: command for event, command in words.items()},
        milliseconds=(wait + SPARE_SECONDS) * 1000,
        refusal=f"    if (done.status !== 0) {refuse}\n" if mode == "enforce" else "",
    )


def plugin_folder(mode: Mode, wait: int, python: str) -> dict[str, str]:
    """The files of a plugin of Claude Code, besides the hook itself, for whatever workspace it is enabled in."""
    hook = Hook(python, "${CLAUDE_PLUGIN_ROOT}/hook.py", "${CLAUDE_PROJECT_DIR}/.pmagent/data")
    hooks = {"description": f"pmagent: {mode}", "hooks": {}}
    for event, entry in entries("claude", mode, wait, hook).items():
        words = hook.words("claude", event, mode, wait)
        handler = {**entry["hooks"][0], "command": words[0], "args": words[1:]}
        hooks["hooks"][event] = [{**entry, "hooks": [handler]}]  # type: ignore[index]
    about = {
        "name": "pmagent", "version": __version__, "author": {"name": "pmagent"}, "license": "Apache-2.0",
        "description": "Records what Claude Code does in pmagent's log, and refuses what its policy does not allow.",
    }  # fmt: skip
    readme = (
        "# pmagent for Claude Code\n\nWritten by `pmagent connect claude --plugin`. It tells pmagent's daemon what\n"
        "Claude Code does in a workspace (a folder with `.pmagent`), and asks it before each call of a tool. Start\n"
        "the daemon with `pmagent up`; `pmagent help connect` says more.\n"
    )
    return {
        ".claude-plugin/plugin.json": json.dumps(about, indent=2) + "\n",
        "hooks/hooks.json": json.dumps(hooks, indent=2) + "\n",
        "README.md": readme,
    }


def merged(text: str | None, harness: str, mode: Mode, wait: int, hook: Hook) -> str:
    """The settings ``text`` with the hook's entries behind everybody else's; in a file of our own, the whole text.
    Raises ValueError where the text is no JSON object, or its hooks are of another form."""
    if harness == "opencode":
        return plugin(mode, wait, hook)
    if text is None or not text.strip():
        return json.dumps(settings(harness, mode, wait, hook), indent=2, ensure_ascii=False) + "\n"
    document = document_of(text)
    hooks = document.setdefault("hooks", {})
    for event, entry in entries(harness, mode, wait, hook).items():
        if not isinstance(hooks, dict) or not isinstance(hooks.setdefault(event, []), list):
            raise ValueError("its hooks are of another form than the harness takes")
        hooks[event].append(entry)
    return _text(document, text)


def managed(text: str) -> str:
    """The settings ``text`` as those of Claude Code's administrator, who gates it: its prompts run no commands by
    themselves then (``!`...```), of which no hook is told."""
    return _text({**document_of(text), "disableSkillShellExecution": True}, text)


def removed(text: str, hook: Hook) -> str:
    """The settings ``text`` without the hook's entries, and without what holds nothing any more. Raises ValueError."""
    document = document_of(text)
    hooks = document.get("hooks")
    if not isinstance(hooks, dict) or not names(hooks, hook):
        return text
    for event, groups in list(hooks.items()):
        if not isinstance(groups, list):
            continue
        kept = [group for group in (_without(group, hook) for group in groups) if group is not None]
        if kept == groups:
            continue
        hooks[event] = kept
        if not kept:
            del hooks[event]
    if not hooks:
        del document["hooks"]
    return _text(document, text)


def is_empty(text: str) -> bool:
    """Whether a settings file says nothing."""
    return document_of(text).keys() <= {"version", "disableSkillShellExecution"}


def _without(group: Any, hook: Hook) -> Any:
    """A group without the hook's entries; None where it held nothing else."""
    if names(group, hook) and not (isinstance(group, dict) and isinstance(group.get("hooks"), list)):
        return None
    if not isinstance(group, dict) or not names(group, hook):
        return group
    kept = [handler for handler in group["hooks"] if not names(handler, hook)]
    return {**group, "hooks": kept} if kept else None


def names(value: Any, hook: Hook) -> bool:
    """Whether an entry starts the hook of this workspace."""
    if isinstance(value, str):
        return value == hook.file or f" {shlex.quote(hook.file)} " in value  # a word: other paths may end like it
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(names(part, hook) for part in parts)


def document_of(text: str) -> dict[str, Any]:
    """The content of a settings file, as strictly as harnesses read it: one word that is not JSON, such as Python's
    ``NaN``, and they leave out the whole file, in silence. Raises ValueError."""

    def real(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            constant(digits)
        return value

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    try:
        document = json.loads(text, parse_float=real, parse_constant=constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")
    return document


def _text(document: dict[str, Any], like: str) -> str:
    """A document, indented as the text ``like`` is."""
    second = like.partition("\n")[2]
    indent: int | str | None = second[: len(second) - len(second.lstrip(" \t"))] or (2 if "\n" in like else None)
    end = "\n" if like.endswith("\n") else ""
    return json.dumps(document, indent=indent, ensure_ascii=False) + end
