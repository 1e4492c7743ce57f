"""The definitions of a harness: read from its files, compared, told where it widens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pmagent.actors.guests.alerts import ALERTS
from pmagent.contracts.guest_calls import Definition
from pmagent.contracts.guests import GuestDefinitionsChanged, GuestDefinitionsRead
from pmagent.guests import definitions
from pmagent.guests.definitions import Watch, read
from pmagent.guests.harnesses import Hook, settings
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.guests_alone import Alone

OURS = Hook("/usr/bin/python3", "/w/.pmagent/data/hook.py", "/w/.pmagent/data")


def written(path: Path, document: Any) -> None:
    """A file of a harness."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def found(folder: Path, harness: str = "claude") -> dict[tuple[str, str], Definition]:
    """Its definitions, in a workspace and a home below this folder."""
    environ = {"HOME": str(folder / "home")}
    return {(one.kind, one.name.split(" ")[0]): one for one in read(harness, folder / "w", environ, OURS)}


@each("text,runs", [
    ("---\nname: x\n---\nNow: !`date` and", "!`date`"), ("---\nhooks:\n  Stop: []\n---\n", "hooks:"),
    ("---\nname: x\n---\n```!\ndate\n```\n", "```!"), ("---\nname: x\n---\nhooks are `fine`!\n", None),
])  # fmt: skip
def test_prompts_that_run_something_are_hooks_of_others(tmp_path: Path, text: str, runs: str | None) -> None:
    for path in ("w/.claude/skills/x/SKILL.md", "w/.claude/commands/x.md", "home/.claude/agents/x.md"):
        written(tmp_path / path, text)
    made = read("claude", tmp_path / "w", {"HOME": str(tmp_path / "home")}, OURS)
    told = [(one.kind, one.name, one.text) for one in made]
    assert told == ([] if runs is None else [("hook", "in the prompt x", runs)] * 3)


def test_servers_hooks_plugins_and_rules_are_found_and_ours_are_not(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "w"
    server = {"command": "npx", "args": ["-y", "weather"], "env": {"KEY": "secret"}}
    written(workspace / ".mcp.json", {"mcpServers": {"weather": server}})
    written(home / ".claude.json", {"projects": {str(workspace): {"mcpServers": {"mine": {"url": "http://h/mcp"}}}}})
    ours = settings("claude", "enforce", 0, OURS)
    other = {"matcher": "*", "hooks": [{"type": "command", "command": "lint.sh"}]}
    ours["hooks"]["PreToolUse"].append(other)
    more = {"permissions": {"allow": ["Bash"]}, "enabledPlugins": {"p@m": True}}
    written(home / ".claude/settings.json", {**ours, **more})
    plugin = home / ".claude/plugins/cache/p"
    written(home / ".claude/plugins/installed_plugins.json", {"plugins": {"p@m": [{"installPath": str(plugin)}]}})
    written(plugin / ".claude-plugin/plugin.json", {"name": "p", "version": "1"})
    written(plugin / "hooks/hooks.json", {"hooks": {"Stop": [{"hooks": [{"command": "run"}]}]}})
    made = found(tmp_path)
    assert made.keys() == {
        ("server", "weather"), ("server", "mine"), ("hook", "PreToolUse"), ("hook", "Stop"), ("rules", "rules"),
        ("plugin", "p@m"), ("plugin", "p"),
    }
    assert made["server", "weather"].text == "npx -y weather"
    assert made["server", "mine"].text == "http://h/mcp"
    assert made["hook", "PreToolUse"].text == "lint.sh"
    assert "secret" not in str(made)
    written(workspace / ".mcp.json", {"mcpServers": {"weather": {**server, "env": {"KEY": "other"}}}})
    assert found(tmp_path)["server", "weather"] == made["server", "weather"]
    written(workspace / ".mcp.json", {"mcpServers": {"weather": {**server, "args": ["-y", "evil"]}}})
    assert found(tmp_path)["server", "weather"].digest != made["server", "weather"].digest


@each("harness, name, text", [
    ("codex", ".codex/config.toml", "[mcp_servers.s]\ncommand = 'run'\n"),
    ("gemini", ".gemini/settings.json", '{"mcpServers": {"s": {"command": "run"}}}'),
    ("cursor", ".cursor/mcp.json", '{"mcpServers": {"s": {"command": "run"}}}'),
    ("opencode", "opencode.json", '{"mcp": {"s": {"type": "local", "command": ["run"]}}}'),
])  # fmt: skip
def test_of_each_harness(tmp_path: Path, harness: str, name: str, text: str) -> None:
    written(tmp_path / "w" / name, text)
    assert found(tmp_path, harness)["server", "s"].text == "run"
    written(tmp_path / "w" / name, "{ not")
    assert found(tmp_path, harness).keys() == {("rules", "the")}


def test_files_are_read_again_where_they_have_changed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    layout, watch, alone = Layout(tmp_path / "w"), Watch(), Alone()
    assert watch.news("claude", layout, None) == []
    alone.tell(GuestDefinitionsRead(session="s", harness="claude", definitions=[]))
    last = alone.state.definitions["claude"]
    written(tmp_path / "w/.mcp.json", {"mcpServers": {"s": {"command": "run"}}})
    news = watch.news("claude", layout, last)
    assert news is not None
    assert [one.name for one in news] == ["s"]
    assert watch.news("claude", layout, last) is None  # it was told
    assert (watch.due(at_once=False), watch.due(at_once=False), watch.due(at_once=True)) == (True, False, True)


def one(kind: Any, name: str, digest: str = "a") -> Definition:
    """A definition."""
    return Definition(kind=kind, name=name, path="/f", digest=digest * 64, text=f"run {digest}")


def told(alone: Alone, *made: Definition, session: str = "s") -> list[Any]:
    """The decisions on them."""
    return alone.tell(GuestDefinitionsRead(session=session, harness="claude", definitions=[*made]))


@each("before, after, how, widens", [
    ([], [one("server", "x")], "added", True), ([one("server", "x")], [one("server", "x", "b")], "changed", True),
    ([one("server", "x")], [], "removed", False), ([one("hook", "x")], [], "removed", True),
    ([], [one("hook", "x")], "added", True), ([one("plugin", "x")], [one("plugin", "x", "b")], "changed", True),
    ([one("rules", "x")], [one("rules", "x", "b")], "changed", False),
])  # fmt: skip
def test_a_change_is_decided_and_told_where_it_widens(
    before: list[Definition], after: list[Definition], how: str, widens: bool
) -> None:
    alone = Alone()
    assert told(alone, *before) == []  # the first time nothing has changed
    changed, = told(alone, *after, session="next")
    assert isinstance(changed, GuestDefinitionsChanged)
    assert [(part.how, part.widens) for part in changed.changes] == [(how, widens)]
    assert changed.widens == widens
    assert len(list(ALERTS["guest.definitions_changed"](alone.events[-1]))) == widens
    assert told(alone, *after, session="later") == []


def test_what_the_log_says_is_found_again(tmp_path: Path) -> None:
    assert definitions.recorded(Layout(tmp_path).store, "claude") is None
