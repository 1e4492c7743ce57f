"""The demo and its device, ended from outside, leave nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, invoke
from tests.support.effort import some


def commands() -> Iterator[bytes]:
    """The command lines of all processes."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            yield place.read_bytes()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_device_that_is_ended_says_nothing_and_takes_its_link_away(tmp_path: Path, ending: signal.Signals) -> None:
    link = tmp_path / "device"
    device = warm.Popen(
        [sys.executable, "-I", "-m", "pmagent.pla.device", "--link", str(link)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with device:
        assert device.stdin is not None
        assert device.stdout is not None
        for _ in range(2):  # it has begun, and its terminal is there
            device.stdout.readline()
        device.send_signal(ending)
        assert device.wait(SECONDS) == 0
        assert device.stderr is not None
        assert device.stderr.read() == b""
    assert not link.is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize("ending", some([signal.SIGTERM, signal.SIGHUP, signal.SIGINT], 1))
def test_a_demo_that_is_ended_puts_everything_away(tmp_path: Path, ending: signal.Signals) -> None:
    demo = warm.Popen(
        [*PMAGENT, "pla", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**clean_environment(), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with demo:
        assert demo.stdout is not None
        while b"the device is linked" not in (line := demo.stdout.readline()):
            assert line, "the device was linked before the end"
        demo.send_signal(ending)
        told = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 130, told
    assert list(tmp_path.iterdir()) == []
    assert not [words for words in commands() if str(tmp_path).encode() in words], "daemon and device have ended"


def test_a_folder_that_exists_is_not_played_in(tmp_path: Path) -> None:
    done = invoke("pla", "demo", "--keep", str(tmp_path))
    assert done.code == 2
    assert "name a folder that does not exist yet" in done.errors
