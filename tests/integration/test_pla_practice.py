"""The practice device in a terminal: a real daemon types on it, and its keys are what befalls a device."""

from __future__ import annotations

import os
import pty
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import fresh_example
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent
from tests.support.daemons import running
from tests.support.pla_live import asked, await_event, configure, pla

pytestmark = pytest.mark.slow


class Practising:
    """``pmagent pla practice`` on a terminal of its own."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until it shows that."""
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], SECONDS)
            assert ready, self.seen
            self.seen += os.read(self._master, 4096).decode()

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())


@contextmanager
def practising(workspace: Path, *options: str) -> Iterator[Practising]:
    """It runs meanwhile, and ends by ``q``."""
    master, end = pty.openpty()
    try:
        process = warm.Popen(
            [*PMAGENT, "pla", "practice", *options], stdin=end, stdout=end, stderr=end, cwd=workspace,
            env=clean_environment(NO_COLOR="1"),
        )
        os.close(end)
        device = Practising(master)
        device.until("it has started")
        yield device
        device.press("q")
        assert process.wait(SECONDS) == 0
    finally:
        os.close(master)


def test_what_is_approved_appears_there_and_its_keys_are_switch_and_plug(tmp_path: Path) -> None:
    workspace = fresh_example(tmp_path / "workspace")
    link = tmp_path / "practice"
    configure(workspace, device=str(link), layout="de", name="rack-3")
    with practising(workspace, "--link", str(link)) as device, running(workspace):
        await_event(workspace, "hid.linked")
        for words in (("mode", "SUGGEST"), ("mode", "EXECUTE"), ("arm",)):
            pla(workspace, *words)
        device.until("armed: its light is on")
        shown = asked(workspace, "propose", "type: Grüße, zâ €\\")
        assert (shown["layout"], shown["machine"]) == ("de", "rack-3")
        assert "rack-3, keyboard layout de" in pla(workspace, "show").text
        pla(workspace, "approve", "--digest", shown["digest"])
        device.until("Grüße, zâ €\\")
        refused = asked(workspace, "propose", "type: 日本", expect=1)
        assert "U+65E5" in refused["reasons"][0]
        assert "de" in refused["reasons"][0]
        device.press("k")
        device.until("kill switch: hit")
        await_event(workspace, "hid.tripped")
        device.press("c")
        device.press("u")
        device.until("unplugged")
        device.press("u")
        device.until("plugged in")
        device.press("?")
        device.until("q quit")
    assert not link.exists()


def test_without_a_terminal_it_says_what_programs_use(tmp_path: Path) -> None:
    done = pmagent(fresh_example(tmp_path / "workspace"), "pla", "practice")
    assert done.code == 2
    assert "pmagent.pla.device" in done.errors
