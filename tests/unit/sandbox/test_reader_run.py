"""A process that reads what others wrote: its limits hold, with the sandbox and without."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pmagent.actors.sandbox import bubblewrap as bubblewraps
from pmagent.actors.sandbox.reader import arguments
from pmagent.actors.sandbox.reader import run as limited
from pmagent.actors.sandbox.reader.run import Limited, run_limited
from tests.support.cases import each
from tests.support.limited_child import WAITING

CHILD = "tests.support.limited_child"


@pytest.fixture(params=["sandboxed", "unsandboxed"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> functools.partial[Limited]:
    if request.param == "unsandboxed":
        monkeypatch.setattr(limited, "bubblewrap_options", lambda *_: ())
    elif not arguments.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a sandbox")
    return functools.partial(run_limited, CHILD, seconds=30, memory_bytes=2**30, output_bytes=2**20)


def test_the_answer_comes_whole(run: functools.partial[Limited]) -> None:
    said = "request " * 100_000
    ended = run(f"echo {said}".encode())
    assert (ended.ended, ended.exit_code, ended.signal) == ("done", 0, 0)
    assert ended.output == said[::-1].encode()


def test_one_that_does_not_end_is_ended(run: functools.partial[Limited]) -> None:
    assert run(b"loop ", seconds=0.5).ended == "timed_out"


def test_one_that_says_no_more_and_stays_is_ended(run: functools.partial[Limited]) -> None:
    assert run(b"wait ", seconds=0.5).ended == "timed_out"


def test_memory_is_bounded(run: functools.partial[Limited]) -> None:
    assert run(b"grow ", memory_bytes=2**28).ended == "memory"


def test_the_answer_is_bounded(run: functools.partial[Limited]) -> None:
    ended = run(b"talk ")
    assert ended.ended == "output"
    assert len(ended.output) <= 2**20 + 2**16


def test_a_crash_is_told_with_its_signal(run: functools.partial[Limited]) -> None:
    ended = run(b"fall ")
    assert (ended.ended, ended.signal) == ("crashed", 11)


def test_an_unknown_module_is_a_crash() -> None:
    ended = run_limited("tests.support.there_is_none", b"", seconds=30, memory_bytes=2**30, output_bytes=10)
    assert (ended.ended, ended.exit_code) == ("crashed", 1)
    assert b"there_is_none" in ended.stderr_tail


def test_it_stops_when_told(run: functools.partial[Limited]) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    began = time.monotonic()
    assert run(b"loop ", stop=stop).ended == "stopped"
    assert time.monotonic() - began < 10
    timer.join()


def test_no_file_gets_content(run: functools.partial[Limited], tmp_path: Path) -> None:
    path = tmp_path / "file"
    ended = run(f"write {path}".encode(), readable=(str(tmp_path),))
    assert (ended.ended, ended.output) == ("done", b"OSError")
    assert not path.exists() or path.read_bytes() == b""


def test_standard_error_is_kept_apart(run: functools.partial[Limited]) -> None:
    ended = run(b"identity ")
    assert ended.stderr_tail == b"@1\n@2\n"
    assert int(ended.output)


def test_the_environment_stays_outside(run: functools.partial[Limited], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "value")
    assert b"SOME_API_KEY" not in run(b"environment ").output


def test_in_the_sandbox_only_what_is_readable_is_there(tmp_path: Path) -> None:
    if not arguments.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a sandbox")
    run = functools.partial(run_limited, CHILD, seconds=30, memory_bytes=2**30, output_bytes=2**20)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("content")
    readable = (str(inside),)
    assert run(f"read {inside}/file".encode(), readable=readable).output == b"content"
    assert run(f"read {outside}/file".encode(), readable=readable).output == b"FileNotFoundError"
    assert run(f"write {inside}/new".encode(), readable=readable).output == b"OSError"
    assert not (inside / "new").exists()


def bubblewrap(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of this name first on PATH."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_with_a_bubblewrap_that_says_no_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bubblewrap("exit 1", tmp_path, monkeypatch)
    ended = run_limited(CHILD, b"echo word", seconds=30, memory_bytes=2**30, output_bytes=10)
    assert (ended.ended, ended.output, ended.sandboxed) == ("done", b"drow", False)


def test_with_a_bubblewrap_that_says_nothing_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bubblewrap("exec tail -f /dev/null", tmp_path, monkeypatch)
    monkeypatch.setattr(bubblewraps, "_SECONDS", 0.5)
    with pytest.raises(TimeoutError):
        run_limited(CHILD, b"echo word", seconds=30, memory_bytes=2**30, output_bytes=10)


def test_what_is_only_in_a_users_own_packages_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "own_module.py").write_text("import os\nos.write(1, b'found')\n")
    monkeypatch.syspath_prepend(packages)
    ended = run_limited("own_module", b"", seconds=30, memory_bytes=2**30, output_bytes=10)
    assert (ended.ended, ended.output) == ("done", b"found")


def test_in_the_sandbox_there_is_no_network() -> None:
    if not arguments.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a sandbox")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = run_limited(
            CHILD, f"connect {port}".encode(), seconds=30, memory_bytes=2**30, output_bytes=2**20
        )  # fmt: skip
    assert ended.output in {b"ConnectionRefusedError", b"OSError"}


_OWNER = """
import sys
from pmagent.actors.sandbox.reader import run as limited
if sys.argv[1] == "unsandboxed":
    limited.bubblewrap_options = lambda *_: ()
memory = int(sys.argv[2])
limited.run_limited("tests.support.limited_child", b"wait ", seconds=60, memory_bytes=memory, output_bytes=10)
"""


def _lines(word: bytes) -> list[list[bytes]]:
    """The command lines, but the owner's, that have ``word`` in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if word in words and words[-2] == CHILD.encode():
                found.append(words)
    return found


def _names(word: bytes) -> list[str]:
    """The names that those processes have given themselves."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in path.read_bytes().split(b"\0"):
                found.append(path.with_name("comm").read_text().strip())
    return found


@each("mode", ["sandboxed", "unsandboxed"])
def test_it_ends_with_its_owner(mode: str) -> None:
    memory = str(2**30 + os.getpid()).encode()  # by which it is known
    until = time.monotonic() + 30
    with subprocess.Popen([sys.executable, "-c", _OWNER, mode, memory], stdin=subprocess.DEVNULL) as owner:
        while WAITING not in _names(memory):
            assert time.monotonic() < until
        owner.kill()
    while _lines(memory):
        assert time.monotonic() < until


def _held() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_wherever_descriptors_run_out_no_reader_is_left(run: functools.partial[Limited]) -> None:
    """One more descriptor each time, until a reading succeeds: each of the places where they can be lacking."""
    run(b"echo word")  # what is opened once is open
    before, (soft, hard) = _held(), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free := os.dup(0))
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    others = children.read_text()
    lacked = tries = 0
    for most in range(free, 1000):
        tries += 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        try:
            ended = run(b"echo word")
            assert (ended.ended, ended.output) == ("done", b"drow")
            break
        except OSError as error:
            lacked += error.errno == errno.EMFILE
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert _held() == before
        assert children.read_text() == others
    assert lacked == tries - 1 > 8
