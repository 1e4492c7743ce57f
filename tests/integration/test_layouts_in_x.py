"""The device types by a layout what an X server with that layout shows a program: every character that it types, dead
keys and AltGr among them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from pmagent.contracts.pla import TypeText, is_typable, typable
from pmagent.firmware.layouts import LAYOUTS
from scripts.layouts import NAMES
from tests.support.pla_wired import Wired, commit
from tests.support.x_server import XServer, x_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("Xvfb") and shutil.which("setxkbmap")), reason="there is no X server"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[XServer]:
    with x_server() as running:
        yield running


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_character_that_a_layout_types_is_what_a_program_reads(server: XServer, layout: str) -> None:
    server.lay_out(*NAMES[layout])
    every = "".join(one for one in typable() if is_typable(one, layout))
    assert set(map(chr, range(0x20, 0x7F))) <= set(every)
    action = TypeText(text=every + every[::-1], layout=layout)
    wired = Wired().prepared(action)
    before = len(wired.typed)
    assert wired.perform(commit(action)).state == "DONE"
    assert server.typed(wired.typed[before:]) == action.text


def test_a_text_for_another_layout_is_not_what_is_read(server: XServer) -> None:
    """The measure measures: what is declared decides."""
    server.lay_out(*NAMES["de"])
    action = TypeText(text="rm -rf ./tmp/*", layout="us")
    wired = Wired().prepared(action)
    before = len(wired.typed)
    wired.perform(commit(action))
    assert server.typed(wired.typed[before:]) != action.text
