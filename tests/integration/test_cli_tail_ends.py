"""How a follower in a process of its own ends, when nothing more happens in the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.logged import note, write_log

SECONDS = 60.0


@contextmanager
def following(workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A follower that has caught up."""
    write_log(workspace, [note(1)])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PMAGENT_")}
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), "log", "tail", "-f"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().decode() == "— caught up at 2 —\n"
            yield process
        finally:
            process.kill()


def test_it_ends_silently_when_its_reader_goes_though_nothing_more_happens(tmp_path: Path) -> None:
    with following(tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(SECONDS) == 141
        assert process.stderr.read() in (b"", b"note: no daemon runs\n"), "nothing of its end"


def test_ctrl_c_says_where_to_go_on(tmp_path: Path) -> None:
    with following(tmp_path) as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert "pmagent log tail --after 2" in process.stderr.read().decode()
