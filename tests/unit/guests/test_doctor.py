"""``pmagent doctor`` says how harnesses are connected, and what keeps their hooks from running."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from pmagent.contracts.guests import GuestDefinitionsRead
from pmagent.events.event import Draft
from pmagent.guests.definitions import hook_file, read
from pmagent.guests.doctor import look
from tests.support.cases import each
from tests.support.logged import write_log
from tests.unit.guests.test_connect import Place


def _broken(path: Path) -> None:
    path.write_text("{")


def _without(path: Path) -> None:
    document = json.loads(path.read_text())
    del document["hooks"]["ConfigChange"]
    path.write_text(json.dumps(document))


def _off(path: Path) -> None:
    path.with_name("settings.json").write_text('{"disableAllHooks": true}')


def _reached(path: Path) -> None:
    path.with_name("settings.json").write_text('{"env": {"LD_PRELOAD": "/tmp/x.so"}}')


def _gone(path: Path) -> None:
    (path.parents[1] / ".pmagent/data/hook.py").unlink()


def _older(path: Path) -> None:
    (path.parents[1] / ".pmagent/data/hook.py").write_text("old")


TROUBLES: list[tuple[Callable[[Path], None], str, str]] = [
    (_broken, "fail", "settings.local.json"), (_without, "fail", "ConfigChange"), (_off, "fail", "settings.json"),
    (_reached, "warn", "LD_PRELOAD"), (_gone, "fail", "hook.py"), (_older, "warn", "version"),
]  # fmt: skip


@each("trouble,state,place", TROUBLES)
def test_what_keeps_hooks_from_running_is_found(
    tmp_path: Path, trouble: Callable[[Path], None], state: str, place: str
) -> None:
    here = Place(tmp_path)
    path = here.connect("claude", "project", "enforce")
    assert look(here.layout, here.environ)[0] == "ok"
    trouble(path)
    found = look(here.layout, here.environ)
    assert found[0] == state
    assert place in found[1]
    assert found[2]


def test_how_each_is_connected_and_what_goes_past_it(tmp_path: Path) -> None:
    here = Place(tmp_path)
    assert look(here.layout, here.environ)[0] == "ok"
    here.connect("gemini", "user")
    here.connect("codex", "user", "enforce")
    here.layout.spool.mkdir()
    (here.layout.spool / "1.json").touch()
    state, text, _ = look(here.layout, here.environ)
    assert state == "warn"  # nobody here knows whether Codex trusts the hook
    for part in ("gemini (user, observe)", "codex (user, enforce)", "write_stdin", "pmagent guest run", "1 facts"):
        assert part in text


TRUSTS: list[tuple[str, dict[str, object], bool]] = [
    ("trustedFolders.json", {"@": "TRUST_FOLDER"}, True), ("trustedFolders.json", {"@/..": "TRUST_FOLDER"}, True),
    ("trustedFolders.json", {"@/../other": "TRUST_PARENT"}, True), ("trustedFolders.json", {}, False),
    ("trustedFolders.json", {"@": "DO_NOT_TRUST"}, False),
    ("trustedFolders.json", {"@/..": "TRUST_FOLDER", "@": "DO_NOT_TRUST"}, False),
    ("trustedFolders.json", {"@": 1}, False), ("settings.json", {"security": 1}, False),
    ("settings.json", {"security": {"folderTrust": {"enabled": False}}}, True),
    ("settings.json", {"security": {"folderTrust": {"enabled": True}}}, False),
]  # fmt: skip


@each("file,content,trusted", TRUSTS)
def test_gemini_runs_a_projects_hooks_where_its_user_trusts_the_folder(
    tmp_path: Path, file: str, content: dict[str, object], trusted: bool
) -> None:
    here = Place(tmp_path)
    here.connect("gemini")
    own = tmp_path / "home/.gemini"
    own.mkdir(parents=True)
    (own / file).write_text(json.dumps(content).replace("@", str(here.layout.workspace)))
    state, text, _ = look(here.layout, here.environ)
    assert (state, "does not trust" in text) == (("ok", False) if trusted else ("fail", True))


@each("place,switch,state", [
    ("home", {"enabled": False}, "fail"), ("home", {"disabled": ["pmagent"]}, "fail"), ("home", 1, "fail"),
    ("w", {"disabled": ["pmagent"]}, "ok"), ("trusted", {"disabled": ["pmagent"]}, "fail"), ("home", {}, "ok"),
])  # fmt: skip
def test_gemini_with_hooks_switched_off(tmp_path: Path, place: str, switch: object, state: str) -> None:
    """A project's settings count where its user trusts it."""
    here = Place(tmp_path)
    path = here.connect("gemini", "user")
    document = json.loads(path.read_text())
    if place == "trusted":
        (path.parent / "trustedFolders.json").write_text(json.dumps({str(here.layout.workspace): "TRUST_FOLDER"}))
    if place != "home":
        path, document = here.layout.workspace / ".gemini/settings.json", {}
        path.parent.mkdir()
    path.write_text(json.dumps({**document, "hooksConfig": switch}))
    assert look(here.layout, here.environ)[0] == state


def test_codex_with_hooks_switched_off(tmp_path: Path) -> None:
    here = Place(tmp_path)
    here.connect("codex", "user")
    config = tmp_path / "home/.codex/config.toml"
    config.write_text("[features]\nhooks = false\n")
    assert look(here.layout, here.environ)[0] == "fail"
    config.write_text("[")
    assert look(here.layout, here.environ)[0] == "fail"




def test_what_a_harness_also_goes_by_is_counted_and_what_has_changed_is_named(tmp_path: Path) -> None:
    here = Place(tmp_path)
    here.connect("claude", "project", "enforce")
    servers = here.layout.workspace / ".mcp.json"
    servers.write_text('{"mcpServers": {"weather": {"command": "run"}}}')
    state, text, _ = look(here.layout, here.environ)
    assert (state, "claude also goes by 1 MCP server(s);" in text) == ("ok", True)
    known = read("claude", here.layout.workspace, here.environ, hook_file(here.layout))
    fact = GuestDefinitionsRead(session="s", harness="claude", definitions=known)
    write_log(here.layout.workspace, [
        Draft("guest.definitions_read", None, msgspec.json.encode(fact), "d", "hook", "s", 0, "fact")
    ])  # fmt: skip
    assert look(here.layout, here.environ)[0] == "ok"
    servers.write_text('{"mcpServers": {"weather": {"command": "run --evil"}}}')
    state, text, remedy = look(here.layout, here.environ)
    assert (state, "server weather was changed since the last session (run --evil)" in text) == ("warn", True)
    assert str(servers) in remedy
