"""The demo and its device, ended from outside, leave nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import PMAGENT, SECONDS, clean_environment, invoke


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_device_that_is_ended_says_nothing_and_takes_its_link_away(tmp_path: Path, ending: signal.Signals) -> None:
    link = tmp_path / "device"
    device = subprocess.Popen(
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
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_demo_that_is_ended_puts_everything_away(tmp_path: Path, ending: signal.Signals) -> None:
    demo = subprocess.Popen(
        [*PMAGENT, "pla", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**clean_environment(), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with demo:
        assert demo.stdout is not None
        while b"the device is linked" not in (line := demo.stdout.readline()):
            assert line, "the device was linked before the end"
        demo.send_signal(ending)
        demo.communicate(timeout=SECONDS)
    assert demo.returncode == 130
    assert list(tmp_path.iterdir()) == []
    running = [place.read_bytes() for place in Path("/proc").glob("[0-9]*/cmdline") if place.exists()]
    assert not [one for one in running if str(tmp_path).encode() in one], "daemon and device have ended"


def test_a_folder_that_exists_is_not_played_in(tmp_path: Path) -> None:
    done = invoke("pla", "demo", "--keep", str(tmp_path))
    assert done.code == 2
    assert "name a folder that does not exist yet" in done.errors
