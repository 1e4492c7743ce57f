"""Which system calls a sandbox allows: every number tried for real, and real programs that need many of them."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox.reader import run as limited
from pmagent.actors.sandbox.reader.run import run_limited
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import SEARCH, Limits, SandboxSpec
from tests.support import every_call
from tests.support.callers import Caller, caller, callers
from tests.support.every_call import FIRST, MARKS, NUMBERS
from tests.support.filters import ALLOW, answer
from tests.support.sandboxes import needs_sandbox, output_of

__all__ = ["caller"]

PROGRAM = Path(every_call.__file__).read_text(encoding="utf-8")


def expected(*, any_socket: bool = False) -> list[str]:
    """The lines that the program prints where the kernel answers as the filter is read."""

    def told(number: int, first: tuple[int, ...]) -> str:
        found = answer(os.uname().machine, number, *first, *MARKS, any_socket=any_socket)
        return "passed" if found == ALLOW else str(errno.errorcode.get(found & 0xFFFF, 0))

    return [f"{number} {index} {told(number, first)}" for number in NUMBERS for index, first in enumerate(FIRST)]


@needs_sandbox
@callers()
def test_the_kernel_answers_every_call_as_the_filter_is_read(caller: Caller) -> None:
    """The planner's is the same but for families of sockets."""
    assert caller.said(PROGRAM).splitlines() == expected(any_socket=caller.name == "planner")


def test_who_reads_what_strangers_wrote_without_a_wall_has_the_same_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "bubblewrap_options", lambda *_: ())
    ended = run_limited("tests.support.every_call", b"", seconds=60, memory_bytes=2**30, output_bytes=2**20)
    assert ended.ended == "done", ended.stderr_tail
    assert ended.output.decode().splitlines() == expected()


def test_on_a_machine_whose_calls_are_not_known_nothing_of_strangers_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(OSError, match="no system call filter for riscv64") as found:
        run_limited("tests.support.limited_child", b"echo x", seconds=60, memory_bytes=2**30, output_bytes=10)
    assert found.value.errno == errno.ENOSYS


C = """
#include <pthread.h>
#include <stdio.h>
static void *run(void *given) { return given; }
int main(void) { pthread_t one; return pthread_create(&one, 0, run, 0) || pthread_join(one, 0) || puts("done") < 0; }
"""

PYTHON_WORK = """
import asyncio, ctypes, fcntl, mmap, multiprocessing, os, select, shutil, signal, sqlite3, subprocess, sys, tempfile
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, range(-9, 0)) == [*range(9, 0, -1)]
multiprocessing.Semaphore(1).acquire(), multiprocessing.Value("i", 1), os.eventfd(0), select.epoll(), os.pidfd_open(1)
async def talk():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    child = await asyncio.create_subprocess_exec("cat", "/proc/self/status", stdout=subprocess.PIPE)
    return await reader.read() == b"" and b"Seccomp" in (await child.communicate())[0]
assert asyncio.run(talk())
folder = tempfile.mkdtemp()
assert sqlite3.connect(folder + "/db").execute("pragma journal_mode=wal").fetchall() == [("wal",)]
shutil.copy(folder + "/db", folder + "/copy"), shutil.copytree(folder, folder + "-2")
os.posix_fallocate(os.open(folder + "/copy", os.O_RDWR), 0, 9)
fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX), mmap.mmap(-1, 9), signal.setitimer(signal.ITIMER_REAL, 99)
print("done")
"""

NODE = """
const {Worker} = require("worker_threads"), fs = require("fs"), http = require("http");
const said = "require('worker_threads').parentPort.postMessage(1)";
const one = new Promise(done => new Worker(said, {eval: true}).on("message", done));
const two = new Promise(done => http.createServer((_, answer) => answer.end("x")).listen(0, "127.0.0.1", function () {
  http.get({port: this.address().port, host: "127.0.0.1"}, answer => { answer.resume(); this.close(); done(); });
}));
const three = new Promise(done => {
  const seen = fs.watch("/tmp", () => { seen.close(); done(); });
  fs.writeFileSync("/tmp/x", "1");
});
require("child_process").execSync("true");
Promise.all([one, two, three]).then(() => console.log("done"));
"""

GIT = """
git init -q r; cd r; echo x > f; git add f; git -c user.name=t -c user.email=t@example.org commit -qm one
git gc -q; git worktree add -q ../w; git clone -q . ../o; echo done
"""

PERL = """
use POSIX; use IO::Socket::INET;
IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die;
if (!fork) { exit 0 } wait;
print `true`, "done\\n";
"""

SORT = """
seq 99999 | sort -R --parallel=2 > x; tar cf y x; gzip y; cp --reflink=auto y.gz z
flock z timeout 9 nice true; stat z > x; echo done
"""

WORK = {
    "make": ("make -s -j2; ./a", {"a.c": C, "Makefile": "a: a.c\n\tgcc -O2 -pthread -o a a.c\n"}),
    "git": (GIT, {}),
    "node": ("node a.js", {"a.js": NODE}),
    "perl": ("perl a.pl", {"a.pl": PERL}),
    "java": ("java -XX:+UseG1GC -version; echo done", {}),
    "sort": (SORT, {}),
}


@needs_sandbox
@pytest.mark.parametrize("name", WORK)
def test_programs_of_every_day_do_their_work(tmp_path: Path, name: str) -> None:
    if shutil.which(name, path=":".join(SEARCH)) is None or (name == "make" and shutil.which("gcc") is None):
        pytest.skip(f"{name} is not installed")
    script, files = WORK[name]
    (tmp_path / "artifacts").mkdir()
    wished = SandboxSpec(
        argv=("sh", "-ec", script), artifacts=str(tmp_path / "artifacts"), workdir="/tmp/task",
        files=tuple((path, text.encode()) for path, text in files.items()), limits=Limits(seconds=120),
    )  # fmt: skip
    outcome = anyio.run(run, wished)
    assert (outcome.exit_code, outcome.stdout.decode().strip()) == (0, "done"), outcome


@needs_sandbox
def test_python_does_its_work(tmp_path: Path) -> None:
    assert output_of(tmp_path, PYTHON_WORK, limits=Limits(seconds=120)) == "done"
