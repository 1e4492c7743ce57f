"""Claude Code, Codex, Gemini CLI and opencode themselves under the gate; a model server of the tests leads them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pmagent.guests.connect import CannotConnect, disconnect, hook_of, installed_source, plan_disconnect, write_plugin
from pmagent.guests.doctor import look
from pmagent.guests.harnesses import merged, requirements
from pmagent.guests.policy import template
from tests.support.commands import SECONDS
from tests.support.daemons import stopped
from tests.support.effort import NIGHT
from tests.support.guest_models import prompt
from tests.support.guests import PROGRAMS, Place, Ran, installed, of, place
from tests.support.policies import write_policy

pytestmark = [installed, pytest.mark.slow]

HARNESSES = of("claude", "codex", *(("gemini", "opencode") if NIGHT else ()))
EVERY = of("claude", "codex", "gemini", "opencode")
RECORDING = of("claude", "codex", *(("gemini",) if NIGHT else ()))  # those that take long to start do most by night
TWO = of("claude", "codex")
RAN = "echo hi > ran.txt"
EVERYTHING = ("allow Bash", "allow Edit(./**)")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def until(stands: Callable[[], object], agent: Future[Ran] | None = None) -> None:
    """Return when something stands, which an ``agent`` brings about; looked at often."""
    end = time.monotonic() + SECONDS
    while not stands():
        assert time.monotonic() < end
        assert agent is None or not agent.done(), agent.result()
        threading.Event().wait(0.02)


@contextmanager
def running(here: Place, harness: str, *turns: Any) -> Iterator[Future[Ran]]:
    """An agent that works meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(here.run, harness, *turns)


def ran(here: Place) -> bool:
    """Whether the shell's line was run."""
    return (here.workspace / "ran.txt").exists()


@EVERY
def test_what_is_allowed_runs_and_what_is_denied_does_not(here: Place, harness: str) -> None:
    here.policy(*EVERYTHING, "deny Bash(rm *)")
    here.start()
    here.connect(harness)
    kept = here.workspace / "kept.txt"
    kept.touch()
    done = here.run(harness, [here.shell(harness, RAN)], [here.shell(harness, "rm kept.txt")], "done")
    assert done.code == 0, done
    assert ran(here)
    assert kept.exists()
    assert "pmagent" in done.results[1]
    started, = here.events("guest.session_started")
    assert (started.harness, started.mode) == (harness, "enforce")
    assert [decided.answer for decided in here.events("guest.call_decided")] == ["allow", "deny"]
    closed, = here.events("guest.session_closed")
    assert (closed.asked, closed.allowed, closed.refused, closed.unknown) == (2, 1, 1, 0)


@HARNESSES
def test_observe_records_and_holds_nothing_up(here: Place, harness: str) -> None:
    """Without a daemon, too: what hooks leave in the spool is taken in at the next start."""
    here.policy("deny Bash(*)")
    here.connect(harness, "observe")
    assert here.run(harness, [here.shell(harness, RAN)], "done").code == 0
    assert ran(here)
    here.start()
    (here.workspace / "ran.txt").unlink()
    assert here.run(harness, [here.shell(harness, RAN)], "done").code == 0
    assert ran(here)
    asked = here.events("guest.call_asked")
    assert [(one.mode, one.source) for one in asked] == [("observe", "spool"), ("observe", "live")]


@RECORDING
def test_without_a_daemon_nothing_runs(here: Place, harness: str) -> None:
    here.policy(*EVERYTHING)
    here.connect(harness)
    done = here.run(harness, [here.shell(harness, RAN)], "done")
    assert not ran(here)
    assert "pmagent up" in done.results[0]


@TWO
def test_a_subagent_is_under_the_gate(here: Place, harness: str) -> None:
    here.policy("allow Agent", "allow spawn_agent", "allow Bash(sleep *)", "deny Bash(echo *)")
    here.start()
    here.connect(harness)
    inner = prompt([here.shell(harness, RAN)], "done")
    spawned: list[Any] = ["Agent", {"description": "d", "prompt": inner, "subagent_type": "general-purpose"}]
    if harness == "codex":
        spawned = ["multi_agent_v1.spawn_agent", {"message": inner}]
    done = here.run(harness, [spawned], [here.shell(harness, "sleep 3")], "done")
    assert done.code == 0, done
    assert not ran(here)
    asked = {one.facts.tool: one.facts for one in here.events("guest.call_asked") if one.facts.agent}
    assert asked["Bash"].agent_type


def test_hooks_switched_off_show_in_the_transcript(here: Place) -> None:
    """An agent that writes disableAllHooks before a session is ungated: the session is held against its transcript
    as soon as a hook tells of its end; here the person's own settings still do."""
    here.policy(*EVERYTHING)
    here.start()
    here.connect("claude")
    settings = here.home / ".claude/settings.json"
    document = json.loads(settings.read_text())
    del document["hooks"]["PreToolUse"]
    settings.write_text(json.dumps(document))
    assert here.run("claude", [here.shell("claude", RAN)], "done").code == 0
    assert ran(here)
    unseen, = here.events("guest.call_unseen")
    assert unseen.tool == "Bash"
    closed, = here.events("guest.session_closed")
    assert (closed.proof, closed.unseen) == ("in_part", 1)
    assert "unseen" in json.dumps(here.document("alerts")["open"])


@RECORDING
def test_a_session_whose_calls_were_all_asked_is_gated(here: Place, harness: str) -> None:
    here.policy(*EVERYTHING)
    here.start()
    here.connect(harness)
    assert here.run(harness, [here.shell(harness, RAN)], [here.shell(harness, "echo 2")], "done").code == 0
    ended, = here.events("guest.session_ended")
    assert (ended.transcript, ended.calls, ended.unseen) == ("read", 2, 0)
    closed, = here.events("guest.session_closed")
    assert (closed.proof, closed.unknown, closed.reasons) == ("gated", 0, [])


def test_a_file_that_a_person_mentions_is_seen_in_the_transcript(here: Place) -> None:
    here.start()
    here.connect("claude")
    (here.workspace / "notes.txt").write_text("private")
    assert here.run("claude", "done @notes.txt ").code == 0
    unseen, = here.events("guest.call_unseen")
    assert "notes.txt" in unseen.input


WAITING = "touch began; until test -e go; do sleep 0.05; done; " + RAN
PAUSE = "until test -e go; do sleep 0.05; done"


def waits(here: Place) -> int:
    """The number of what waits for an operator."""
    until(lambda: here.events("guest.approval_asked"))
    return int(here.events("guest.approval_asked")[-1].approval)


@HARNESSES
def test_an_approval_lets_the_identical_retry_pass_once(here: Place, harness: str) -> None:
    """Whatever the model says that the call is for; and the same call, once more, is asked about anew."""
    here.policy("allow Bash(test *)", "allow Bash(sleep *)")
    here.start()
    here.connect(harness)
    line = "echo hi >> ran.txt"
    first, again = here.shell(harness, line), here.shell(harness, line)
    if harness != "codex":
        first[1]["description"], again[1]["description"] = "greets", "greets again"
    beside = here.shell(harness, PAUSE)  # of two calls in a turn, none is deferred
    with running(here, harness, [first, beside], [again, beside], [first, beside], "done") as agent:
        number = waits(here)
        here.decide("approve", number)
        (here.workspace / "go").touch()
        done = agent.result()
    assert (here.workspace / "ran.txt").read_text() == "hi\n"
    assert str(number) in done.results[0]
    used, = here.events("guest.approval_used")
    assert used.approval == number
    answers = [one.answer for one in here.events("guest.call_decided")]
    assert (answers.count("ask"), answers.count("allow")) == (2, 4)


@HARNESSES
def test_a_call_that_is_held_goes_on_when_it_is_approved(here: Place, harness: str) -> None:
    here.start()
    here.connect(harness, wait=600)
    with running(here, harness, [here.shell(harness, RAN)], "done") as agent:
        here.decide("approve", waits(here))
        agent.result()
    assert ran(here)
    assert [one.end for one in here.events("guest.call_closed")] == ["ended"]


@HARNESSES
def test_a_call_that_is_held_and_rejected_does_not_run(here: Place, harness: str) -> None:
    here.start()
    here.connect(harness, wait=600)
    with running(here, harness, [here.shell(harness, RAN)], "done") as agent:
        here.decide("reject", waits(here))
        done = agent.result()
    assert not ran(here)
    assert "pmagent" in done.results[0]
    assert [one.end for one in here.events("guest.call_closed")] == ["refused"]


@HARNESSES
def test_a_daemon_killed_between_verdict_and_end(here: Place, harness: str) -> None:
    """The call ends with what its hook left in the spool; what came meanwhile was refused."""
    here.policy(*EVERYTHING)
    here.start()
    here.connect(harness)
    with running(here, harness, [here.shell(harness, WAITING)], [here.shell(harness, "touch second")], "done") as agent:
        until((here.workspace / "began").exists, agent)
        here.kill()
        (here.workspace / "go").touch()
        done = agent.result()
    assert ran(here)
    assert not (here.workspace / "second").exists()
    assert "pmagent up" in done.results[1]
    here.start()
    until(lambda: here.events("guest.session_closed"))
    ended, = here.events("guest.call_ended")
    assert (ended.source, ended.ok) == ("spool", True)
    closed, = here.events("guest.call_closed")
    assert closed.end == "ended"
    session, = here.events("guest.session_closed")
    assert (session.asked, session.unknown, session.unseen) == (1, 0, harness != "opencode")  # no transcript there


def hooks_of(here: Place) -> list[int]:
    """The hooks of this workspace that run."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"-S" in words and str(here.layout.home / "hook.py").encode() in words:
                found.append(int(folder.name))
    return found


@HARNESSES
def test_a_hook_that_is_killed_lets_nothing_run(here: Place, harness: str) -> None:
    here.start()
    here.connect(harness, wait=600)
    with running(here, harness, [here.shell(harness, RAN)], "done") as agent:
        until(lambda: here.events("guest.approval_asked"), agent)
        for hook in hooks_of(here):
            os.kill(hook, signal.SIGKILL)
        agent.result()
    assert not ran(here)


@HARNESSES
def test_a_daemon_that_says_nothing_lets_nothing_run(here: Place, harness: str) -> None:
    here.policy(*EVERYTHING)
    here.start()
    here.connect(harness)
    assert here.daemon is not None
    with stopped(here.daemon):
        done = here.run(harness, [here.shell(harness, RAN)], "done")
    assert not ran(here)
    assert "pmagent" in done.results[0]


@HARNESSES
def test_whoever_is_not_answered_in_time_is_refused(here: Place, harness: str) -> None:
    here.policy("allow Bash(true *)")
    here.start()
    here.connect(harness, wait=1)
    done = here.run(harness, [here.shell(harness, RAN), here.shell(harness, "true")], "done")
    assert not ran(here)
    asked, = here.events("guest.approval_asked")
    assert str(asked.approval) in done.results[0]


def test_hooks_cannot_be_switched_off_in_mid_session(here: Place) -> None:
    """Claude Code asks before it takes changed settings; the change is refused, recorded, and the gate goes on."""
    here.policy("allow Bash", "allow Edit(./began)")
    here.start()
    here.connect("claude")
    turns = [here.shell("claude", WAITING.replace(RAN, "true"))], [here.shell("claude", RAN)], "done"
    with running(here, "claude", *turns) as agent:
        until((here.workspace / "began").exists, agent)
        settings = here.workspace / ".claude" / "settings.local.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text('{"disableAllHooks": true}')
        until(lambda: here.events("guest.changed"), agent)
        (here.workspace / "go").touch()
        agent.result()
    assert not ran(here)
    changed = here.events("guest.changed")[0]
    assert (changed.path, changed.refused) == (str(settings), True)
    assert changed.digest


def test_the_plugin_is_valid_and_gates(here: Place, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write_plugin(folder, "enforce", 0)
    words = [str(PROGRAMS / "claude"), "plugin", "validate", "--strict", str(folder)]
    assert subprocess.run(words, env=here.environ, capture_output=True, timeout=SECONDS, check=False).returncode == 0
    here.policy("deny Bash")
    here.start()
    done = here.run("claude", [here.shell("claude", RAN)], "done", flags=("--plugin-dir", str(folder)))
    assert not ran(here)
    assert "pmagent" in done.results[0]
    assert [one.answer for one in here.events("guest.call_decided")] == ["deny"]


TASK = (
    "git status", "ls", "cat app.py", "grep -rn main .", "git diff", "python3 -m pytest -q", "git log --oneline",
    "git branch", "sed -n 1,5p app.py", "find . -name '*.py'", "wc -l app.py", "git add app.py", "git commit -m work",
    "git show --stat", "ruff check .", "mypy app.py", "python3 -m pytest -q -x", "git status --short",
    "head -n 3 app.py", "git push origin main",
)  # fmt: skip


def test_a_task_under_the_shipped_template_asks_at_most_twice(here: Place) -> None:
    """Twenty calls of ordinary work; and without hooks nothing proves that they were gated."""
    (here.workspace / "app.py").write_text("def main() -> None: ...\n")
    write_policy(here.workspace, template(["python"]))
    here.start()
    here.connect("claude")
    assert here.run("claude", *([here.shell("claude", line)] for line in TASK), "done").code == 0
    answers = [one.answer for one in here.events("guest.call_decided")]
    assert len(answers) == len(TASK)
    assert answers.count("ask") + answers.count("deny") <= 2
    (here.workspace / ".claude").mkdir(exist_ok=True)
    (here.workspace / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    assert here.run("claude", *([here.shell("claude", line)] for line in TASK[:3]), "done").code == 0
    assert len(here.events("guest.call_decided")) == len(TASK)
    assert here.document("import", "claude", str(here.home / ".claude/projects"))["calls"] == 3
    imported = [one for one in here.events("guest.call_asked") if one.source == "import"]
    assert [one.input["command"] for one in imported] == list(TASK[:3])
    shown = {one["session"]: one["proof"] for one in here.document("guests")["sessions"]}
    assert sorted(shown.values()) == ["gated", "not_proven"]


def test_doctor_sees_whether_codex_trusts_the_hook(here: Place) -> None:
    """A hook that has changed by one second is skipped, without a word."""
    settings = here.connect("codex")
    config = here.home / ".codex/config.toml"
    trusted = config.read_text()
    assert look(here.layout, here.environ)[0] == "ok"
    settings.write_text(settings.read_text().replace('"timeout": 35', '"timeout": 36'))
    state, text, _ = look(here.layout, here.environ)
    assert state == "fail"
    assert "PreToolUse" in text
    here.policy("deny Bash")
    here.start()
    here.run("codex", [here.shell("codex", RAN)], "done")
    assert ran(here)
    here.connect("codex")
    assert config.read_text().count("trusted_hash") == trusted.count("trusted_hash")
    connection, plans = plan_disconnect(here.layout, "codex", "user")
    disconnect(here.layout, connection, plans)
    assert "trusted_hash" not in config.read_text()
    assert not settings.exists()


@TWO
def test_managed_settings_hold_against_those_of_the_project(here: Place, harness: str, tmp_path: Path) -> None:
    """In a namespace that has a copy of /etc with the hook in it; everything else would switch hooks off."""
    etc = tmp_path / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    here.policy("deny Bash")
    here.start()
    hook = hook_of(here.layout)
    Path(hook.file).write_bytes(installed_source())
    off: tuple[str, ...] = ("-c", "features.hooks=false")
    if harness == "claude":
        (etc / "claude-code/managed-settings.d").mkdir(parents=True)
        text = merged(None, "claude", "enforce", 0, hook)
        (etc / "claude-code/managed-settings.d/50-pmagent.json").write_text(text)
        (here.workspace / ".claude").mkdir()
        (here.workspace / ".claude/settings.json").write_text('{"disableAllHooks": true}')
        off = ("--setting-sources", "project")
    else:
        (etc / "codex").mkdir()
        (etc / "codex/requirements.toml").write_text(requirements("enforce", 0, hook))
    words = here.command(harness, [here.shell(harness, RAN)], "done", flags=off)
    inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(etc), "/etc", "--", str(PROGRAMS / words[0])]
    done = subprocess.run(
        [*inside, *words[1:]], cwd=here.workspace, env=here.environ, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert not ran(here), done
    assert [one.answer for one in here.events("guest.call_decided")] == ["deny"], done


@of("claude")
def test_settings_that_it_would_leave_out_are_not_connected(here: Place, harness: str) -> None:
    """It says so itself, of the text that would be written. An event that it does not know does no harm."""
    path = here.home / ".claude/settings.json"
    path.parent.mkdir()
    for text, fault in (('{"model": 5}', "model"), ('{"hooks": {"Stop": [{"hooks": "x"}]}}', "hooks.Stop")):
        path.write_text(text)
        with pytest.raises(CannotConnect, match=fault):
            here.connect(harness)
        assert path.read_text() == text
    path.write_text('{"hooks": {"Unknown": [{"hooks": []}]}, "env": {"A": "b"}}')
    here.connect(harness)
    assert look(here.layout, here.environ)[0] == "ok"
    path.write_text(json.dumps({**json.loads(path.read_text()), "permissions": {"allow": "x"}}))
    assert look(here.layout, here.environ)[0] == "fail"


def test_what_codex_types_into_a_program_shows_in_the_transcript(here: Place) -> None:
    """No hook is told of it, so a shell that reads what it runs is asked about; the transcript tells of the rest."""
    here.policy("allow Bash")
    here.start()
    here.connect("codex")
    opened = [["exec_command", {"cmd": "cat", "tty": True, "yield_time_ms": 500}]]
    typed = [["write_stdin", {"session_id": "last", "chars": "hi\n", "yield_time_ms": 500}]]
    shell = [["exec_command", {"cmd": "bash", "tty": True, "yield_time_ms": 500}]]
    assert here.run("codex", opened, typed, shell, "done").code == 0
    assert [one.answer for one in here.events("guest.call_decided")] == ["allow", "ask"]
    unseen, = here.events("guest.call_unseen")
    assert unseen.tool == "write_stdin"
    closed, = here.events("guest.session_closed")
    assert (closed.proof, closed.unseen) == ("in_part", 1)
