"""Runs of configured checks, for real: how they end, and what they can see, change and reach."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.checks.effects import FOLDER, run_check
from pmagent.contracts.checks import OUTPUT_BYTES_MAX, CheckRan, CheckRunRequested, CheckUnstarted
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.events.event import Event
from pmagent.service.host import open_host
from pmagent.workspace.trust import accept
from tests.support.live import NoIo
from tests.support.sandboxes import needs_sandbox

pytestmark = needs_sandbox


class At(NoIo):
    """A workspace, and nothing else of the world."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a log of its own, to be kept from checks, and a file."""
    place = tmp_path / "workspace"
    (place / ".pmagent" / "run").mkdir(parents=True)
    (place / ".pmagent" / "config.toml").write_text("secret = 1\n")
    (place / "notes.txt").write_text("a lamp\n")
    return place


def asked(*argv: str, position: int = 7, seconds: float = 20.0, reads: tuple[str, ...] = ()) -> Event:
    """A request to run a check."""
    request = CheckRunRequested(
        permit=6, request=5, kind="check", name="it", argv=list(argv), seconds=seconds, attempt=1, reads=list(reads)
    )
    kind, raw = type_of(request), encode(request)
    at = "2026-11-21T12:00:00.000000Z"
    return Event(position, at, str(position), "decision", "checker", kind, "c", 6, decode(kind, raw), raw)


def files(folder: Path) -> dict[Path, bytes]:
    """Everything that there is."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def outcome(workspace: Path, *argv: str, **more: Any) -> Any:
    """How a check ends. Nothing of it is left."""
    found: Any = await run_check(asked(*argv, **more), At(workspace))
    assert list((workspace / FOLDER).iterdir()) == []
    assert found.request == 7
    return found


async def script(workspace: Path, text: str, **more: Any) -> CheckRan:
    """How a shell script ends that is started."""
    found = await outcome(workspace, "sh", "-c", text, **more)
    assert isinstance(found, CheckRan), found
    return found


async def test_a_check_says_how_it_ended_and_what_it_wrote(workspace: Path) -> None:
    good = await script(workspace, "cat notes.txt; echo careful >&2")
    assert (good.exit_code, good.signal, good.timed_out, good.cut) == (0, None, False, False)
    assert (good.stdout, good.stderr) == ("a lamp\n", "careful\n")
    assert (await script(workspace, "exit 3")).exit_code == 3


async def test_a_signal_ends_a_check_and_so_does_the_time(workspace: Path) -> None:
    killed = await script(workspace, "kill -9 $$")
    assert (killed.exit_code, killed.signal) == (None, 9)
    slow = await script(workspace, "sleep 100 & sleep 100; wait", seconds=0.3)
    assert slow.timed_out
    polite = await script(workspace, "trap 'exit 0' TERM; sleep 100 & wait", seconds=0.3)
    assert polite.timed_out, "that it then says all is well changes nothing"


@pytest.mark.parametrize(("argv", "text"), [
    (["no-such-program"], "there is no program no-such-program"),
    (["./no/script.sh"], "no/script.sh"),
    (["../outside.sh"], "not visible"),
    ([".pmagent/config.toml"], "config.toml"),
])
async def test_a_program_that_is_not_there_is_not_started(workspace: Path, argv: list[str], text: str) -> None:
    (workspace.parent / "outside.sh").write_text("#!/bin/sh\n")
    found = await outcome(workspace, *argv)
    assert isinstance(found, CheckUnstarted) or found.exit_code
    if isinstance(found, CheckUnstarted):
        assert text in found.text
        assert found.mend


async def test_a_program_of_the_workspace_is_named_by_its_path_in_it(workspace: Path) -> None:
    file = workspace / "scripts" / "check.sh"
    file.parent.mkdir()
    file.write_text('#!/bin/sh\necho "$PWD" "$1"\n')
    file.chmod(0o755)
    found = await outcome(workspace, "scripts/check.sh", "one")
    assert found.stdout == f"{workspace} one\n"
    file.chmod(0o644)
    assert (await outcome(workspace, "./scripts/check.sh")).exit_code != 0


async def test_a_check_changes_nothing(workspace: Path) -> None:
    before = files(workspace)
    found = await script(
        workspace, "echo x > notes.txt; touch new; rm notes.txt; mkdir .pmagent/x; chmod 777 notes.txt; echo tried"
    )
    assert found.stdout == "tried\n"
    assert "Read-only" in found.stderr
    assert files(workspace) == before


async def test_a_check_does_not_see_what_is_ours(workspace: Path) -> None:
    found = await script(workspace, "ls -A .pmagent; cat .pmagent/config.toml; ls")
    assert found.stdout == "notes.txt\n"
    assert "No such file" in found.stderr


async def test_a_check_gets_an_environment_of_its_own(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse")
    found = await script(workspace, "env; cat /proc/1/environ | tr '\\0' '\\n'")
    assert "correct-horse" not in found.stdout
    names = {line.partition("=")[0] for line in found.stdout.splitlines()}
    assert names <= {
        "PATH", "HOME", "TMPDIR", "LANG", "ARTIFACTS", "PWD", "SHLVL", "OLDPWD", "_",
        "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0",
    }


async def test_git_looks_at_the_workspace_whoever_it_belongs_to(workspace: Path) -> None:
    await anyio.run_process(["git", "init", "-q", "-b", "trunk", str(workspace)])
    found = await script(workspace, "git status --short --branch")
    assert (found.exit_code, found.stdout.splitlines()[0]) == (0, "## No commits yet on trunk"), found.stderr


async def test_output_of_any_kind_comes_as_plain_text_and_is_bounded(workspace: Path) -> None:
    hostile = await script(workspace, r"printf '\033[2J\033]0;title\007red\r\n\377\000\342\200\256end'")
    assert hostile.stdout == "red\n\ufffdend"
    endless = await script(workspace, "yes lamp | head -c 3000000; yes | tr -d '\\n' | head -c 3000000 >&2")
    assert endless.cut
    assert OUTPUT_BYTES_MAX - 10 < len(endless.stdout) <= OUTPUT_BYTES_MAX
    assert set(endless.stdout.split("\n")) == {"lamp"}
    assert endless.stderr == "", "half of a line may be half of a secret"


async def test_whatever_a_check_leaves_in_its_folder_is_removed(workspace: Path) -> None:
    found = await script(
        workspace, "cd $ARTIFACTS && mkdir -p a/b/c && touch a/f 'x\ty' && ln -s /etc l && chmod 000 a/b; echo $?",
    )
    assert (found.exit_code, found.stdout) == (0, "0\n")


async def test_what_a_killed_process_left_is_removed_by_the_next_start(workspace: Path) -> None:
    accept(workspace)
    left = workspace / FOLDER / "3" / "deep"
    left.mkdir(parents=True)
    async with open_host(workspace, "tests"):
        assert not (workspace / FOLDER).exists()
    await script(workspace, "true")


async def test_a_run_that_is_cancelled_leaves_nothing(workspace: Path) -> None:
    os.mkfifo(workspace / "up", 0o666)
    (workspace / "up").chmod(0o666)
    up = os.open(workspace / "up", os.O_RDWR | os.O_NONBLOCK)
    ours = f"sleep 1000.{os.getpid()}"  # and nobody else's, who runs these tests as well
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_check, asked("sh", "-c", f"echo up > up; exec {ours}"), At(workspace))
        await anyio.wait_readable(up)
        assert [path.name for path in (workspace / FOLDER).iterdir()] == ["7"]
        tasks.cancel_scope.cancel()
    os.close(up)
    assert list((workspace / FOLDER).iterdir()) == []
    assert ours not in (await anyio.run_process(["ps", "-eo", "args"])).stdout.decode()


async def test_runs_at_the_same_time_do_not_touch_each_others_folders(workspace: Path) -> None:
    found: dict[int, Any] = {}

    async def one(position: int) -> None:
        text = f"echo {position} > $ARTIFACTS/mine; sleep 0.2; cat $ARTIFACTS/*"
        found[position] = await run_check(asked("sh", "-c", text, position=position), At(workspace))

    async with anyio.create_task_group() as tasks:
        for position in range(1, 5):
            tasks.start_soon(one, position)
    assert {position: ran.stdout for position, ran in found.items()} == {n: f"{n}\n" for n in range(1, 5)}


async def test_without_bubblewrap_nothing_is_started(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    found = await outcome(workspace, "true")
    assert isinstance(found, CheckUnstarted)
    assert "bubblewrap is not installed" in found.text
    assert "apt-get install" in found.mend


async def test_a_folder_that_is_not_there_cannot_be_read(workspace: Path) -> None:
    found = await outcome(workspace, "true", reads=("/opt/no/such/folder",))
    assert isinstance(found, CheckUnstarted)
    assert "/opt/no/such/folder" in found.text
