"""Connecting a harness keeps everybody else's settings, and is undone byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.guests import connect as connecting
from pmagent.guests.codex_trust import without_trust
from pmagent.guests.connect import CannotConnect, Connection, Plan
from pmagent.guests.dialects import Ended, Finished, Started, read
from pmagent.guests.doctor import look
from pmagent.guests.harnesses import Hook, Mode, Scope, merged, plugin, removed, requirements, settings
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.effort import some
from tests.unit.guests.test_hook import REFUSAL, TAKEN, serving

HOOK = Hook("/usr/bin/python3", "/w o/.pmagent/data/hook.py", "/w o/.pmagent/data")
JSON_HARNESSES = ("claude", "codex", "gemini", "cursor", "copilot")

_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_handlers = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
_groups = st.lists(st.fixed_dictionaries({"matcher": st.text(max_size=5), "hooks": st.lists(_handlers, max_size=2)}))
_hooks = st.dictionaries(st.sampled_from(["PreToolUse", "preToolUse", "Stop", "SessionStart"]), _groups, max_size=3)
_documents = st.builds(
    lambda others, hooks: {**others, **({} if hooks is None else {"hooks": hooks})},
    st.dictionaries(st.text(max_size=6).filter(lambda name: name != "hooks"), _values, max_size=3), st.none() | _hooks,
)  # fmt: skip


_modes, _indents = st.sampled_from(get_args(Mode)), st.sampled_from([None, 2, 4, "\t"])


@given(_documents, st.sampled_from(JSON_HARNESSES), _modes, _indents)
def test_others_entries_stay_as_they_are(document: dict[str, Any], harness: str, mode: Mode, indent: Any) -> None:
    """In their order, ahead of ours; and taken out again, the document is what it was, but for empty lists."""
    text = json.dumps(document, indent=indent)
    after = json.loads(merged(text, harness, mode, 20, HOOK))
    for name, value in document.items():
        if name != "hooks":
            assert after[name] == value
    for event, groups in document.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    left = json.loads(removed(json.dumps(after), HOOK))
    hooks = left.get("hooks", {})
    assert hooks == {event: groups for event, groups in document.get("hooks", {}).items() if groups or event in hooks}
    assert {**left, "hooks": 0} == {**document, "hooks": 0}


@given(_documents)
def test_without_entries_of_ours_a_text_stays(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=3)
    assert removed(text, HOOK) == text


@each("harness,mode", [(harness, mode) for harness in JSON_HARNESSES for mode in get_args(Mode)])
def test_entries_start_the_hook_isolated_and_in_time(harness: str, mode: Mode) -> None:
    """An integer timeout of at least a second, 30 beyond the daemon's; in observe nothing may refuse."""
    for event, (entry,) in settings(harness, mode, 20, HOOK)["hooks"].items():
        handler = entry["hooks"][0] if "hooks" in entry else entry
        seconds = handler.get("timeoutSec") or handler["timeout"] // (1000 if harness == "gemini" else 1)
        assert isinstance(seconds, int)
        assert seconds >= (50 if event.lower() in ("pretooluse", "beforetool", "configchange") else 1)
        line = handler.get("bash") or handler["command"]
        if line == HOOK.python:
            assert handler["args"] == ["-I", "-S", HOOK.file, harness, event, mode, "20", HOOK.data]
        else:
            assert f"-I -S '{HOOK.file}' {harness} {event} {mode} 20 '{HOOK.data}'" in line
            assert line.endswith("; exit 0" if mode == "observe" else "; exit 2")
        assert "onFailure" not in handler or mode == "enforce"


def test_codexs_managed_settings_are_toml() -> None:
    import tomllib

    document = tomllib.loads(requirements("enforce", 5, HOOK))
    assert document["features"] == {"hooks": True}
    assert document["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] == 40


class Place:
    """A workspace and a home, in which harnesses are connected."""

    def __init__(self, folder: Path) -> None:
        (folder / "w" / ".pmagent").mkdir(parents=True)
        (folder / "home").mkdir()
        self.layout = Layout(folder / "w")
        self.environ = {"HOME": str(folder / "home"), "PATH": str(folder / "none")}

    def plan(self, harness: str, scope: Scope, mode: Mode) -> Plan:
        """The changes that connecting would make."""
        return connecting.plan_connect(self.layout, harness, scope, mode, 20, self.environ)[0]

    def connect(self, harness: str, scope: Scope = "project", mode: Mode = "observe") -> Path:
        """Connect; the settings file."""
        plan = self.plan(harness, scope, mode)
        connecting.connect(self.layout, harness, scope, mode, 20, plan, "", self.environ)
        return plan.path

    def disconnect(self, harness: str, scope: Scope = "project") -> list[Plan]:
        """Disconnect; what it changed."""
        connection, plans = connecting.plan_disconnect(self.layout, harness, scope)
        connecting.disconnect(self.layout, connection, plans)
        return plans


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _tree(folder: Path) -> dict[str, bytes | None]:
    found = (path for path in folder.rglob("*") if ".pmagent" not in path.parts)
    return {str(path): None if path.is_dir() else path.read_bytes() for path in found}


ALL = [(harness, scope) for harness in (*JSON_HARNESSES, "opencode") for scope in ("user", "project")]


@each("harness,scope,before", some([(*one, before) for one in ALL for before in (None, b'{"a":1,\n   "b": [ ]}')], 8))
def test_undone_byte_for_byte(tmp_path: Path, harness: str, scope: Scope, before: bytes | None) -> None:
    """Also after it was connected twice, in both modes; and folders that were made for it go."""
    place = Place(tmp_path)
    path = place.plan(harness, scope, "observe").path
    if before is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(before)
        path.chmod(0o640)
    was = _tree(tmp_path)
    first = place.connect(harness, scope).read_bytes()
    assert place.plan(harness, scope, "observe").difference == []
    assert place.connect(harness, scope).read_bytes() == first
    assert place.connect(harness, scope, "enforce").read_bytes() != first
    assert place.disconnect(harness, scope)[0].exact
    assert _tree(tmp_path) == was
    assert before is None or path.stat().st_mode & 0o777 == 0o640
    assert not Path(connecting.hook_of(place.layout).file).exists()


def test_of_a_file_that_others_changed_only_ours_is_taken_out(place: Place) -> None:
    path = place.connect("claude")
    document = json.loads(path.read_text())
    document["model"] = "opus"
    theirs = {"type": "command", "command": "true"}
    document["hooks"]["PreToolUse"].insert(0, {"matcher": "Bash", "hooks": [theirs]})
    document["hooks"]["PreToolUse"][1]["hooks"].append(theirs)
    path.write_text(json.dumps(document))
    assert not place.disconnect("claude")[0].exact
    left = {"PreToolUse": [{"matcher": "Bash", "hooks": [theirs]}, {"matcher": "*", "hooks": [theirs]}]}
    assert json.loads(path.read_text()) == {"model": "opus", "hooks": left}


@each("harness,mode", [(harness, mode) for harness in JSON_HARNESSES for mode in get_args(Mode)])
def test_the_hook_of_another_workspace_stays(harness: str, mode: Mode) -> None:
    """Of one whose path ends with ours, too."""
    other = Hook(HOOK.python, f"/x{HOOK.file}", f"/x{HOOK.data}")
    text = merged(None, harness, mode, 20, other)
    assert removed(merged(text, harness, mode, 20, HOOK), HOOK) == text


@each("harness", ["claude", "cursor"])
def test_a_file_that_holds_nothing_else_goes(tmp_path: Path, harness: str) -> None:
    place = Place(tmp_path)
    path = place.connect(harness)
    for undo in (False, True):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=7))
        if undo:
            place.disconnect(harness)
        else:
            place.connect(harness)
    assert not path.exists()


def test_a_connection_that_was_changed_since_is_made_anew(place: Place) -> None:
    path = place.connect("claude")
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))
    place.connect("claude", "project", "enforce")
    assert len(json.loads(path.read_text())["hooks"]["PreToolUse"]) == 1
    place.disconnect("claude")
    assert json.loads(path.read_text()) == {"model": "opus"}


@each("text", [
    b"[]", b"{", b'{"hooks": []}', b'{"hooks": {"PreToolUse": {}}}', b'{"a": "\xff"}', b"// mine\n{}", b'{"a": NaN}',
    b'{"a": 1e400}', b"[" * 100_000,
])  # fmt: skip
def test_what_is_not_understood_is_left_alone(tmp_path: Path, text: bytes) -> None:
    place = Place(tmp_path)
    path = place.layout.workspace / ".claude/settings.local.json"
    path.parent.mkdir()
    path.write_bytes(text)
    with pytest.raises(CannotConnect) as raised:
        place.plan("claude", "project", "observe")
    assert str(path) in raised.value.message
    assert path.read_bytes() == text


@each("made", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), os.mkdir])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, made: Callable[[Path], None]) -> None:
    place = Place(tmp_path)
    path = place.layout.workspace / ".claude/settings.local.json"
    path.parent.mkdir()
    made(path)
    with pytest.raises(CannotConnect, match="no plain file"):
        place.plan("claude", "project", "observe")


@each("entry,refused", [("model: Expected string", True), ("hooks.Foo: Unknown hook event was ignored", False)])
def test_settings_that_claude_code_would_leave_out_are_not_connected(tmp_path: Path, entry: str, refused: bool) -> None:
    """One value of another form voids the whole file there, and our hooks with it."""
    place = Place(tmp_path)
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    said = f"Claude Code doctor\n\nInvalid settings\n- $CLAUDE_CONFIG_DIR/settings.json \u203a {entry}\n\nNext\n- none"
    program.write_text(f'#!/bin/sh\n[ $1 = doctor ] && echo "{said}" || echo 2.1.330\n')
    program.chmod(0o755)
    place.connect("claude")
    place.environ["PATH"] = str(program.parent)
    state, text, _ = look(place.layout, place.environ)
    assert (state, entry in text) == ("fail" if refused else "ok", refused)
    if refused:
        with pytest.raises(CannotConnect, match="model"):
            place.plan("claude", "project", "observe")


@each("changed", [False, True])
def test_a_workspace_that_was_moved_takes_its_connection_along(tmp_path: Path, changed: bool) -> None:
    """Hooks of the folder where it lay would refuse every call for ever."""
    place = Place(tmp_path)
    path = place.connect("claude")
    if changed:
        path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))
    (tmp_path / "w").rename(tmp_path / "moved")
    place.layout = Layout(tmp_path / "moved")
    assert "settings.local.json does not start the hook" in look(place.layout, place.environ)[1]
    made = place.connect("claude").read_text()
    assert (f"{tmp_path}/w/" in made, f"{tmp_path}/moved/" in made, "opus" in made) == (False, True, changed)
    place.disconnect("claude")
    assert (tmp_path / "moved/.claude").exists() == changed


def test_a_file_made_through_a_link_goes_and_the_link_stays(place: Place, tmp_path: Path) -> None:
    link = place.layout.workspace / ".claude/settings.local.json"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "dotfiles.json")
    place.connect("claude")
    place.disconnect("claude")
    assert link.is_symlink()
    assert not link.exists()


def test_a_crash_in_between_is_undone_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Plan) -> None:
        raise KeyboardInterrupt

    path = place.layout.workspace / ".claude/settings.local.json"
    path.parent.mkdir()
    path.write_text('{"a":  1}')
    with monkeypatch.context() as patch:
        patch.setattr(connecting, "_write", crash)
        with pytest.raises(KeyboardInterrupt):
            place.connect("claude")
    place.disconnect("claude")
    assert path.read_text() == '{"a":  1}'


def test_a_link_is_followed_and_stays(place: Place, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_text("{}")
    link = place.layout.workspace / ".claude/settings.local.json"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "dotfiles.json")
    place.connect("claude")
    assert link.is_symlink()
    assert b"hook.py" in (tmp_path / "dotfiles.json").read_bytes()
    place.disconnect("claude")
    assert (tmp_path / "dotfiles.json").read_text() == "{}"


@each("before", [None, "{}"])
def test_a_file_that_is_another_one_since_it_was_shown_stays(place: Place, before: str | None, tmp_path: Path) -> None:
    path, other = place.layout.workspace / ".claude/settings.local.json", tmp_path / "profile"
    path.parent.mkdir(exist_ok=True)
    other.write_text("export A=1\n")
    path.unlink(missing_ok=True)
    if before is not None:
        path.write_text(before)
    plan = place.plan("claude", "project", "observe")

    def refused() -> None:
        with pytest.raises(CannotConnect, match="has been changed since it was shown"):
            connecting.connect(place.layout, "claude", "project", "observe", 20, plan, "", place.environ)

    path.unlink(missing_ok=True)
    path.symlink_to(other)
    refused()
    assert other.read_text() == "export A=1\n"
    path.unlink()
    path.write_text('{"model": "opus"}')
    refused()
    assert json.loads(path.read_text()) == {"model": "opus"}
    assert [one.name for one in path.parent.iterdir()] == [path.name], "nothing is left beside it"


def test_a_file_that_changes_before_it_would_go_stays(place: Place) -> None:
    path = place.connect("claude")
    connection, plans = connecting.plan_disconnect(place.layout, "claude", "project")
    assert plans[0].after is None
    path.write_text('{"model": "opus"}')
    with pytest.raises(CannotConnect):
        connecting.disconnect(place.layout, connection, plans)
    assert path.exists()
    place.disconnect("claude")
    assert json.loads(path.read_text()) == {"model": "opus"}


def test_only_what_is_known_is_connected(place: Place) -> None:
    with pytest.raises(CannotConnect):
        place.plan("gemini", "managed", "observe")
    with pytest.raises(CannotConnect):
        place.disconnect("claude")
    (place.layout.home).mkdir(exist_ok=True)
    (place.layout.home / "guests.json").write_text("{")
    with pytest.raises(CannotConnect):
        place.plan("claude", "project", "observe")


@each("said,refused", [("2.1.294 (Claude Code)", True), ("2.1.295 (Claude Code)", False), ("no version", False)])
def test_a_version_that_lets_tools_run_is_not_connected(tmp_path: Path, said: str, refused: bool) -> None:
    place = Place(tmp_path)
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    place.environ["PATH"] = str(program.parent)
    place.plan("claude", "project", "observe")
    if refused:
        with pytest.raises(CannotConnect):
            place.plan("claude", "project", "enforce")
    else:
        place.plan("claude", "project", "enforce")


def test_trust_is_taken_back_from_changed_settings() -> None:
    ours = '\n[hooks.state."/h/hooks.json:pre_tool_use:0:0"]\ntrusted_hash = "sha256:1"\n'
    theirs = '\n[hooks.state."/h/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:2"\n'
    assert without_trust(f"a = 1\n{ours}{theirs}", ["/h/hooks.json:pre_tool_use:0:0"]) == f"a = 1\n\n{theirs}"


def test_the_record_is_for_this_user_alone(place: Place) -> None:
    place.connect("claude")
    assert os.stat(place.layout.home / "guests.json").st_mode & 0o777 == 0o600
    assert isinstance(connecting.read_record(place.layout).connections[0], Connection)


PLUGGED = """
const { Pmagent } = await import(process.argv[1])
const hooks = await Pmagent({ directory: "/w" })
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, { args: { command: "ls" } })
  console.log("ran")
} catch (error) {
  console.log(`refused: ${error.message}`)
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_opencodes_plugin_asks_the_daemon_and_refuses_without(place: Place) -> None:
    def said(mode: Mode) -> str:
        path = place.connect("opencode", "project", mode)
        module = path.rename(path.with_suffix(".mjs"))  # opencode reads modules from .js, too
        words = ["node", "--input-type=module", "-e", PLUGGED, str(module)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        module.unlink()
        return done.stdout

    assert said("observe") == "ran\n"
    assert said("enforce").startswith("refused: pmagent's daemon cannot be asked")
    with serving(place.layout.home, TAKEN, REFUSAL) as heard:
        assert said("enforce").startswith("refused: no")
    said_of = {"tool": "bash", "sessionID": "s", "callID": "c", "agent": "", "args": {"command": "ls"}, "cwd": "/w"}
    begun, asked, *_ = map(json.loads, heard)
    assert (begun["event"], begun["payload"]["sessionID"]) == ("session.created", "s")
    assert asked["payload"] == said_of
    with serving(place.layout.home, TAKEN, b'{"exit":0,"stdout":"","stderr":""}\n'):
        assert said("enforce") == "ran\n"


SUBAGENT = """
const { Pmagent } = await import(process.argv[1])
const hooks = await Pmagent({ directory: "/w" })
for (const [id, parentID] of [["s"], ["a", "s"], ["b", "a"]])
  await hooks.event({ event: { type: "session.created", properties: { info: { id, parentID, version: "1" } } } })
const input = { tool: "bash", sessionID: "b", callID: "c", args: {} }
await hooks["tool.execute.after"](input, { output: "o", metadata: { exit: 3 } })
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_opencodes_subagents_belong_to_the_session_that_began_them(place: Place) -> None:
    path = place.connect("opencode", "project", "observe")
    module = path.rename(path.with_suffix(".mjs"))
    words = ["node", "--input-type=module", "-e", SUBAGENT, str(module)]
    subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    told = [json.loads(file.read_bytes()) for file in sorted(place.layout.spool.iterdir())]
    started, finished, ended = [read("opencode", one["event"], one["payload"]) for one in told]
    assert started == Started(session="s", cwd="/w", version="1", source="startup")
    assert finished == Finished(session="s", agent="b", tool="bash", call="c", ok=False, output="o", cwd="/w")
    assert ended == Ended(session="s", reason="exit", cwd="/w")


@pytest.mark.skipif(not shutil.which("node"), reason="opencode's plugin is a program for node")
def test_opencodes_plugin_tells_of_a_session_before_its_first_call(tmp_path: Path) -> None:
    """One that is taken up again is not created, and begins all the same."""
    hook, told = tmp_path / "hook.py", tmp_path / "told"
    hook.write_text(f"import json, sys\nopen({str(told)!r}, 'a').write(sys.argv[2] + ' ' + "
                    "json.load(sys.stdin)['sessionID'] + '\\n')\n")  # fmt: skip
    (tmp_path / "plugin.mjs").write_text(plugin("enforce", 0, Hook(sys.executable, str(hook), "/d")))
    (tmp_path / "run.mjs").write_text(
        'import { Pmagent } from "./plugin.mjs"\n'
        'const made = await Pmagent({ directory: "/w" })\n'
        'const call = (id) => made["tool.execute.before"]({ tool: "bash", sessionID: id, callID: "c" }, { args: {} })\n'
        'await call("old"); await call("old")\n'
        'await made.event({ event: { type: "session.created", properties: { info: { id: "new", version: "1" } } } })\n'
        'await call("new")\n'
    )
    subprocess.run(["node", str(tmp_path / "run.mjs")], check=True, timeout=60, stdin=subprocess.DEVNULL)
    before = "tool.execute.before"
    assert told.read_text().splitlines() == [
        "session.created old", f"{before} old", f"{before} old", "session.created new", f"{before} new",
        "session.ended old", "session.ended new",
    ]  # fmt: skip
