"""How runs end: by themselves, by limits, by their time, or because the sandbox could not be; nothing lives on."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox import bubblewrap
from pmagent.actors.sandbox import pid_namespace as processes
from pmagent.actors.sandbox.orphans import end_orphans
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxRefused, SandboxSpec, SandboxUnavailable
from tests.support.cases import each
from tests.support.held_clock import timed_out
from tests.support.sandboxes import (
    PYTHON,
    as_ordinary_user,
    by_root,
    needs_sandbox,
    output_of,
    sandboxed,
    spec_for,
)

pytestmark = needs_sandbox

SHORT = Limits(seconds=2, grace_seconds=0.3)
GENTLE = Limits(seconds=2, grace_seconds=20)

SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def firsts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pidfds of process 1 of each sandbox that the test starts."""
    handles: list[int] = []
    of = processes.PidNamespace.of

    def noted(first: int) -> processes.PidNamespace | None:
        handles.append(os.pidfd_open(first))
        return of(first)

    monkeypatch.setattr(processes.PidNamespace, "of", noted)
    return handles


def ended(handle: int, seconds: float = 0) -> bool:
    """Whether the process of this pidfd has ended (within ``seconds``), and with it its namespace."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


@each("code", [0, 1, 2, 77, 126, 127, 129, 255])
def test_an_exit_code_is_reported_as_it_is(tmp_path: Path, code: int) -> None:
    outcome = sandboxed(tmp_path, f"raise SystemExit({code})")
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (code, None, False)


@each("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_death_by_a_signal_is_no_exit_code(tmp_path: Path, number: int) -> None:
    outcome = sandboxed(tmp_path, f"import os; os.kill(os.getpid(), {int(number)})")
    assert (outcome.exit_code, outcome.signal) == (None, number)


def test_bytes_come_out_as_they_are_and_as_they_come(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []
    content = b"\xff\xfe\x00 no utf-8 \x1b[31m\x1b]0;title\x07 no newline"
    code = f"import os; os.write(1, {content!r}); os.write(2, b'other')"

    async def body() -> Outcome:
        return await run(spec_for(tmp_path / "artifacts", code), lambda name, chunk: heard.append((name, chunk)))

    outcome = anyio.run(body)
    assert (outcome.stdout, outcome.stderr) == (content, b"other")
    assert sorted(heard) == [("stderr", b"other"), ("stdout", content)]


def test_endless_output_without_a_newline_is_cut_and_the_program_goes_on(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(1000): os.write(1, b'x' * 65536)\nos.write(2, b'done')"
    outcome = sandboxed(tmp_path, code, limits=Limits(seconds=30, output_bytes=1000))
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, b"x" * 1000, b"done")
    assert outcome.stdout_bytes == 65_536_000
    assert outcome.stdout_cut
    assert not outcome.stderr_cut


@each("written", [3, 10, 11, 14, 15, 70_000])
def test_the_beginning_and_the_end_of_output_are_kept(tmp_path: Path, written: int) -> None:
    content = bytes(97 + number % 26 for number in range(written))
    code = (
        f"import os\nall = bytes(97 + number % 26 for number in range({written}))\n"
        "for at in range(0, len(all), 7): os.write(1, all[at : at + 7])"
    )
    outcome = sandboxed(tmp_path, code, limits=Limits(seconds=60, output_bytes=10, tail_bytes=4))
    assert outcome.stdout == (content if written <= 14 else content[:10] + content[-4:])
    assert (outcome.stdout_bytes, outcome.stdout_cut) == (written, written > 14)


@pytest.mark.slow
def test_sleeping_forever_gets_term_and_may_clean_up(
    tmp_path: Path, firsts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import os, signal\nsignal.signal(15, lambda *_: os._exit(7))\nprint('ready', flush=True)\n{SLEEP}"
    assert timed_out(monkeypatch, tmp_path, code, GENTLE).exit_code == 7
    assert ended(firsts[0])


@pytest.mark.slow
def test_who_ignores_term_is_killed_at_last(tmp_path: Path, firsts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"import os, signal\nsignal.signal(15, signal.SIG_IGN)\nos.fork() and print('ready', flush=True)\n{SLEEP}"
    outcome = timed_out(monkeypatch, tmp_path, code, SHORT)
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGKILL)
    assert outcome.seconds < 60, "and not when it would have ended"
    assert ended(firsts[0])


def test_time_that_is_up_before_the_sandbox_stands_starts_nothing(tmp_path: Path) -> None:
    code = "open('/artifacts/ran', 'w')"
    outcome = sandboxed(tmp_path, code, limits=Limits(seconds=1e-9, grace_seconds=1e-9))
    assert (outcome.exit_code, outcome.timed_out) == (None, True)
    assert outcome.signal in (signal.SIGTERM, signal.SIGKILL), "whichever reached it first"
    assert list((tmp_path / "artifacts").iterdir()) == []


@pytest.mark.slow
def test_term_reaches_every_process_and_not_only_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"""
import os, signal
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(15, lambda *_: (open("/artifacts/child", "w"), os._exit(0)))
    os.write(writing, b".")
    {SLEEP}
signal.signal(15, lambda *_: (os.wait(), os._exit(0)))
os.read(reading, 1)
print("ready", flush=True)
{SLEEP}
"""
    timed_out(monkeypatch, tmp_path, code, GENTLE)
    assert (tmp_path / "artifacts" / "child").exists()


def test_a_daemon_that_holds_the_pipes_ends_with_the_program(tmp_path: Path, firsts: list[int]) -> None:
    code = f"""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {SLEEP}
    os._exit(0)
print("main is done")
"""
    outcome = sandboxed(tmp_path, code)
    assert (outcome.exit_code, outcome.stdout, outcome.timed_out) == (0, b"main is done\n", False)
    assert ended(firsts[0])


def test_forking_stops_at_the_limit(tmp_path: Path, firsts: list[int]) -> None:
    code = f"""
import os
for n in range(100):
    try:
        if os.fork() == 0: {SLEEP}
    except BlockingIOError:
        break
print(n)
"""
    assert 10 < int(output_of(tmp_path, code, limits=Limits(seconds=20, processes=20))) < 20
    assert ended(firsts[0])


def test_a_fork_bomb_is_held_and_cleared_away(tmp_path: Path, firsts: list[int]) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert sandboxed(tmp_path, code, limits=Limits(seconds=0.7, grace_seconds=0.3, processes=20)).timed_out
    assert ended(firsts[0])


def test_memory_is_limited(tmp_path: Path) -> None:
    outcome = sandboxed(tmp_path, "x = bytearray(2**30)", limits=Limits(seconds=20, memory_bytes=2**28))
    assert outcome.exit_code == 1
    assert outcome.stderr.endswith(b"MemoryError\n")


def test_memory_as_files_is_limited(tmp_path: Path) -> None:
    code = """
import errno
for path in ("/tmp/x", "/dev/shm/x", "/run/x"):
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(10): assert file.write(bytes(2**20)) == 2**20
    except (OSError, AssertionError) as error:
        print(getattr(error, "errno", errno.ENOSPC) == errno.ENOSPC)
"""
    assert output_of(tmp_path, code, limits=Limits(seconds=20, tmp_bytes=2**21)).split() == ["True"] * 3


def test_a_huge_file_ends_the_program(tmp_path: Path) -> None:
    code = "import signal\nsignal.signal(25, signal.SIG_DFL)\nopen('/artifacts/x', 'wb').write(bytes(2**21))"
    outcome = sandboxed(tmp_path, code, limits=Limits(seconds=20, file_bytes=2**20))
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGXFSZ)
    assert (tmp_path / "artifacts" / "x").stat().st_size == 2**20


def test_open_files_are_limited(tmp_path: Path) -> None:
    code = "import os\ntry:\n    while True: n = os.dup(0)\nexcept OSError as error: print(n, error.errno)"
    assert output_of(tmp_path, code, limits=Limits(seconds=20, open_files=32)) == "31 24"


@pytest.mark.slow
def test_spinning_ends_when_the_processor_time_is_used_up(tmp_path: Path) -> None:
    outcome = sandboxed(tmp_path, "while True: pass", limits=Limits(seconds=60, cpu_seconds=1))
    assert (outcome.signal, outcome.timed_out) == (signal.SIGXCPU, False)


def test_what_could_not_be_limited_is_told(tmp_path: Path) -> None:
    assert sandboxed(tmp_path, "").unenforced == (
        "processor time of all processes together: no cgroup",
        "memory and disk space of all processes together: no cgroup; looked at every 0.25 seconds",
    )


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_run_leaves_nothing(tmp_path: Path, firsts: list[int]) -> None:
    with anyio.CancelScope() as scope:
        await run(spec_for(tmp_path / "artifacts", f"print('here', flush=True)\n{SLEEP}"), lambda *_: scope.cancel())
    assert scope.cancelled_caught
    assert ended(firsts[0])


VICTIM = """
import sys, anyio
from pathlib import Path
from pmagent.actors.sandbox import pid_namespace as processes
from pmagent.actors.sandbox import runner
from tests.support.sandboxes import TRY, as_ordinary_user, by_root, spec_for
def noted(first):
    print(first, flush=True)
    sys.stdin.read()  # to be killed before the sandbox may go on
processes.PidNamespace.of = noted
anyio.run(runner.run, spec_for(Path(sys.argv[1]), "open('/artifacts/ran', 'w')"))
"""


def test_a_runner_killed_while_the_sandbox_is_built_starts_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(tmp_path / "artifacts")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as runs:  # fmt: skip
        assert runs.stdout is not None
        first = os.pidfd_open(int(runs.stdout.readline()))
        try:
            runs.kill()
            runs.wait()
            # Nobody can open the gate any more. If the inner half of bubblewrap waits for its outer, a start ends it;
            # where it is about to end by itself, a start may find it or not.
            if not ended(first, seconds=1):
                end_orphans(str((tmp_path / "artifacts").resolve()))
            assert ended(first, seconds=20)
        finally:
            os.close(first)
    assert not (tmp_path / "artifacts" / "ran").exists()


def test_without_bubblewrap_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="bubblewrap is not installed") as caught:
        sandboxed(tmp_path, "open('/artifacts/ran', 'w')")
    assert "apt-get install bubblewrap" in caught.value.hint
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_bubblewrap_is_asked_once_what_it_can_and_again_when_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "bwrap"

    def install(options: set[str], more: str = "") -> None:
        program.write_text(f"#!/bin/sh\necho x >> {asked}\necho '{' '.join(sorted(options))}' {more}\n")
        program.chmod(0o755)

    install(set(bubblewrap.NEEDED))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert [bubblewrap.bubblewrap() for _ in range(3)] == [str(program)] * 3
    assert asked.read_text() == "x\n"
    install(set(bubblewrap.NEEDED) - {"--seccomp"}, "older")
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="lacks --seccomp"):
            bubblewrap.bubblewrap()
    install(set(bubblewrap.NEEDED), "newer")
    assert bubblewrap.bubblewrap() == str(program)
    assert asked.read_text() == "x\n" * 4


def test_a_sandbox_that_is_not_built_is_no_programs_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = tmp_path / "bwrap"
    fails.write_text(f"""#!/bin/sh
[ "$1" != --help ] || {{ echo '{' '.join(bubblewrap.NEEDED)}'; exit; }}
echo 'bwrap: No permissions to create a new namespace' >&2
exit 1
""")
    fails.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="could not be built: bwrap: No permissions"):
        sandboxed(tmp_path, "")


@by_root
def test_where_the_kernel_refuses_namespaces_nothing_runs() -> None:
    message, left = as_ordinary_user("refused")
    assert message.startswith("the sandbox could not be built: bwrap: ")
    assert "namespace" in message
    assert left == "[]"


@each("program", ["no-such-program", "/usr/bin/no-such-program", "/home/x/tool", "./tool", "../ls"])
def test_a_program_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path, program: str) -> None:
    tmp_path.joinpath("a").mkdir(exist_ok=True)
    with pytest.raises(SandboxRefused, match="program"):
        anyio.run(run, SandboxSpec(argv=(program,), artifacts=str(tmp_path / "a")))


def test_wherever_descriptors_run_out_nothing_is_left_open_or_alive(tmp_path: Path) -> None:
    """One more descriptor each time, until a run succeeds: each of the places where they can be lacking."""
    one = spec_for(tmp_path / "artifacts", "print('ran')")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    messages = []

    async def attempts() -> None:
        await run(one)  # what is opened once is open
        os.close(free := os.dup(0))
        before, others = sorted(os.listdir("/proc/self/fd")), children()
        for most in range(free, 1000):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            try:
                outcome = await run(one)
            except SandboxUnavailable as error:
                messages.append(error.message)
            else:
                assert (outcome.exit_code, outcome.stdout) == (0, b"ran\n")
                return
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert sorted(os.listdir("/proc/self/fd")) == before, messages[-1]
            assert children() == others

    anyio.run(attempts)
    assert len(messages) > 15
    assert all("Too many open files" in message for message in messages)


MANY = """
import resource, sys, anyio
from pathlib import Path
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, SandboxSpec
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
async def one(number):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    argv = ("sh", "-c", "ulimit -n; sleep 1")
    outcome = await run(SandboxSpec(argv=argv, artifacts=str(folder), limits=Limits(seconds=60)))
    print(outcome.exit_code, outcome.stdout.decode().strip())
async def main():
    async with anyio.create_task_group() as group:
        for number in range(20): group.start_soon(one, number)
anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] in range(1024), reason="this user may open few files")
def test_many_run_at_once_where_few_files_are_let_open_by_default(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 256"] * 20


def children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    words = ["$(touch /artifacts/x)", "; touch /artifacts/x", "> /artifacts/x", "*", "", "a b", "`id`", "--", "ü\n"]
    assert output_of(tmp_path, "import sys; print(ascii(sys.argv[1:]))", *words) == ascii(words)
    assert list((tmp_path / "artifacts").iterdir()) == []
    assert os.path.isabs(PYTHON)
