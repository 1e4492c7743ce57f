"""A guest behind the wall: a script in the harness's place tries the ways out, and its hook reaches the gate."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.workspace.layout import Layout
from tests.support.commands import PMAGENT, SECONDS, accepted, clean_environment, pmagent
from tests.support.daemons import running
from tests.support.policies import write_policy

ASK = r"""
ask() { # TOOL COMMAND: what the administrator's hook is told of a call; its exit code
    python3 -I -S - "$1" "$2" <<'END'
import json, subprocess, sys
hooks = json.load(open("/etc/claude-code/managed-settings.json"))["hooks"]
call = {"session_id": "s-1", "source": "startup", "tool_name": sys.argv[1], "tool_use_id": "t",
        "tool_input": {"command": sys.argv[2]}, "cwd": "/", "transcript_path": "/artifacts/.claude/t.jsonl"}
for event in "SessionStart", "PreToolUse":
    hook = hooks[event][0]["hooks"][0]
    words = [hook["command"], *hook["args"]]
    done = subprocess.run(words, input=json.dumps(call), capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
END
}
"""

ATTEMPTS = {
    "read the log": "cat .pmagent/data/log/*",
    "read the policy": "cat .pmagent/policy.yaml",
    "write the policy": "echo 'default: allow' > .pmagent/policy.yaml",
    "read the key": "cat .pmagent/data/key",
    "write the managed settings": "echo '{}' > /etc/claude-code/managed-settings.json",
    "replace them": "mv /etc/claude-code/managed-settings.json /etc/claude-code/old.json",
    "write the hook": 'echo > "$(sed "s/.*\\(\\/[^\\"]*hook.py\\).*/\\1/" /etc/claude-code/managed-settings.json)"',
    "take the place of the relay": "rm /tmp/pmagent-guest-*/gate/run/guest.sock",
    "reach the other socket of the daemon": "ls .pmagent/data/run/daemon.sock",
    "end the daemon": "kill -9 @daemon@",
    "reach the network past the proxy": "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'",
    "reach a host that is not allowed": "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com/\")'",
    "read the home folder": "ls @home@/.ssh @home@/.config",
    "write outside of the workspace": "touch @outside@/x",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "work"
    root.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    layout = Layout(root)
    layout.prepare()
    (root / ".pmagent" / "config.toml").write_text('[kernel]\nsurfaces = "none"\n')
    write_policy(root, "version: 1\nallow: [Bash(echo *)]\n")
    with running(root):
        yield root


def guest(workspace: Path, script: str) -> list[str]:
    """A program called claude on its own folder of PATH, and the command that starts it behind the wall."""
    folder = workspace.parent / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text(f"#!/bin/bash\n{ASK}{script}\n")
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    return [*PMAGENT, "guest", "run", "--wait", "0", "--", "claude"]


def started(workspace: Path, script: str) -> subprocess.CompletedProcess[str]:
    command = guest(workspace, script)
    return subprocess.run(
        command, cwd=workspace, env=clean_environment(PATH=os.environ["PATH"]), capture_output=True, text=True,
        timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])


def test_the_gate_is_asked_from_inside_and_the_log_knows_the_wall(workspace: Path) -> None:
    done = started(workspace, "ask Bash 'echo hi'; ask Bash 'curl example.com'; echo made > file; exit 3")
    assert done.returncode == 3, done.stderr
    first, second = (line for line in done.stdout.splitlines() if line[:1].isdigit())
    assert first.startswith("0 ")
    assert not second.startswith("0 ") or '"deny"' in second
    assert (workspace / "file").read_text() == "made\n"
    events = pmagent(workspace, "log", "export").text
    for kind in ("wall_started", "call_asked", "call_decided", "session_ended", "wall_ended"):
        assert f'"guest.{kind}"' in events
    assert "not_proven" in events  # no transcript was left
    assert pmagent(workspace, "replay").code == 0
    stricter = workspace.parent / "stricter.yaml"
    stricter.write_text("version: 1\ndeny: [Bash(echo *)]\n")
    assert pmagent(workspace, "what-if", "--policy", str(stricter)).code == 3  # it allowed what this one denies


def test_no_way_leads_past_the_wall(workspace: Path) -> None:
    named = {"@daemon@": str(os.getpid()), "@home@": str(Path.home()), "@outside@": str(workspace.parent)}
    tries = []
    for name, attempt in ATTEMPTS.items():
        words = re.sub("@[a-z]+@", lambda mark: named[mark[0]], attempt)
        tries.append(f"({words}) >/dev/null 2>&1 && echo 'PAST: {name}'")
    done = started(workspace, "\n".join([*tries, "echo tried"]))
    assert done.stdout.splitlines() == ["tried"], done.stderr
    assert pmagent(workspace, "log", "verify").code == 0


def test_what_a_guest_leaves_for_others_to_obey_is_moved_aside(workspace: Path) -> None:
    done = started(workspace, "mkdir .claude && echo '{\"disableAllHooks\":true}' > .claude/settings.local.json")
    assert done.returncode == 0
    assert not (workspace / ".claude").exists()
    assert ".claude" in done.stderr


def test_it_has_a_terminal_of_its_own(workspace: Path) -> None:
    command = guest(workspace, "read -r line; echo \"got $line\" > /dev/tty; stty size; test -t 0 && exit 5")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 33, 77, 0, 0))
    process = subprocess.Popen(
        command, cwd=workspace, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        env=clean_environment(PATH=os.environ["PATH"]),
    )  # fmt: skip
    os.close(theirs)
    shown = bytearray()

    def read() -> None:
        try:
            while chunk := os.read(ours, 4096):
                shown.extend(chunk)
        except OSError:
            pass  # the other side has closed

    reader = threading.Thread(target=read)
    reader.start()
    os.write(ours, b"words\r")
    _, errors = process.communicate(timeout=SECONDS)
    reader.join(SECONDS)
    os.close(ours)
    assert process.returncode == 5, errors
    assert b"got words" in shown
    assert b"33 77" in shown


def test_any_program_is_walled_and_its_session_says_that_nothing_gated_it(workspace: Path) -> None:
    words = ["guest", "run", "--ungated", "--", "sh", "-c", "cat .pmagent/policy.yaml; echo made > file; exit 4"]
    done = pmagent(workspace, *words)
    assert done.code == 4, done.errors
    assert (workspace / "file").read_text() == "made\n"
    (shown,) = pmagent(workspace, "guests", "--format", "json").document["sessions"]
    assert (shown["harness"], shown["mode"], shown["proof"]) == ("script", "observe", "not_proven")
    assert shown["wall"]
    assert "walled, not gated" in pmagent(workspace, "guests").text
    assert pmagent(workspace, "replay").code == 0


GIT_ATTACKS = (
    "echo 'touch RAN' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "git config core.fsmonitor 'touch RAN'; git config core.hooksPath hooks; git config filter.x.clean 'touch RAN'",
    "echo '* filter=x' > .git/info/attributes", "echo /tmp > .git/commondir", "echo x > .git/objects/info/alternates",
    "rm -rf .git/objects/?? .git/refs .git/outside; echo x > .git/outside/x", "echo broken > .git/HEAD",
    "mv .git moved", "rm -rf .git; mkdir .git", "echo 'gitdir: /tmp/x' > .git",
    "mkdir -p sub && cd sub && git init -q && git config core.fsmonitor 'touch RAN'",
    "mkdir -p .git/modules/m .git/worktrees/w; echo 'touch RAN' > .git/modules/m/config",
)  # fmt: skip


def test_it_commits_in_a_copy_and_nothing_of_it_runs_outside(workspace: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=workspace, capture_output=True, text=True, check=True, env=who)
        return done.stdout.strip()

    names = [f"GIT_{one}_{part}" for one in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")]
    who = {**os.environ, **dict.fromkeys(names, "a@b")}
    git("init", "-q", "-b", "main")
    (workspace / "a.txt").write_text("first\n")
    git("add", "a.txt")
    git("commit", "-qm", "first")
    identity = "git config user.name g && git config user.email g@h && "
    work = f"{identity} echo 2 > b.txt && git add b.txt && git commit -qm second"
    attacks = "; ".join(f"({attack}) 2>/dev/null" for attack in GIT_ATTACKS)
    run = ("guest", "run", "--ungated", "--commit", "--", "sh", "-c")
    done = pmagent(workspace, *run, work)
    assert done.code == 0, done.errors
    assert "1 as the branch pmagent/guest-" in done.errors
    (branch,) = git("branch", "--format=%(refname:short)", "--list", "pmagent/*").split()
    assert git("log", "--format=%an %s", branch) == "g second\na@b first"
    git("reset", "-q", branch)
    before = {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()}
    assert pmagent(workspace, *run, f"{attacks}; exit 0").code == 0
    assert {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()} == before
    for words in (("status",), ("checkout", "-q", "-b", "other"), ("log",), ("fsck",), ("gc", "-q"), ("diff", "HEAD")):
        git(*words)
        assert not list(workspace.rglob("RAN"))


def test_a_wall_that_cannot_be_built_has_ended_in_the_log(workspace: Path) -> None:
    done = pmagent(workspace, "guest", "run", "--ungated", "--write", "/etc", "--", "sh")
    assert done.code == 7, done.errors
    assert '"exceeded":"not started: ' in pmagent(workspace, "log", "export").text
    (shown,) = pmagent(workspace, "guests", "--format", "json").document["sessions"]
    assert shown["proof"] == "not_proven"


def test_without_a_daemon_nothing_is_started(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Layout(tmp_path).prepare()
    accepted(tmp_path)
    done = pmagent(tmp_path, "guest", "run", "--", "claude")
    assert (done.code, "pmagent up" in done.errors) == (5, True)


def test_a_program_of_no_known_harness_is_a_usage_error(tmp_path: Path) -> None:
    assert pmagent(tmp_path, "guest", "run", "--", "bash").code == 2
    assert pmagent(tmp_path, "guest", "run").code == 2
    assert pmagent(tmp_path, "guest", "run", "--ungated", "--login", "--", "bash").code == 2
