"""The board's programs on the releases and ports of CircuitPython, each lacking something, or raising: the board works,
or flashes what is wrong while no watchdog runs. The settings of its build say what a port has.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.hid import HidEnded, HidRefused
from pmagent.contracts.pla import MouseClick, TypeText
from pmagent.firmware import loop
from pmagent.firmware.core import Core
from pmagent.firmware.sha256 import sha256
from tests.support.board import FakeBoard
from tests.support.board_host import RELEASE, between_releases, started
from tests.support.board_line import HostOnBoard
from tests.support.board_releases import (
    BUILDS,
    CONSOLE,
    FILES,
    MEMORY,
    OTHER,
    PINS,
    SETTINGS,
    USB,
    WATCHDOG,
    Memory,
    Spoil,
    gone,
    hashes,
    holds,
    lacks,
    modules_os,
    one_pin,
    raises,
    raising,
    refuses,
    without,
)
from tests.support.cases import each
from tests.support.effort import examples

TEXT = TypeText(text="Hi!\n")


def stands_still(board: FakeBoard, flashes: int, rounds: int = 3) -> None:
    """Nothing has begun: it flashes, and no watchdog runs that would start it anew."""
    assert board.flashes == [flashes] * rounds
    assert (board.watchdog.mode, board.fed, board.rounds, board.reports) == (None, [], 0, [])
    assert max(board.slept) < 0.5, "light that stays on says armed"


@each("build", BUILDS)
def test_it_types_on_every_build_or_says_what_is_missing(build: str) -> None:
    port = BUILDS[build]
    board, host = started(TEXT)
    board.spoil = port.spoil
    if port.flashes:
        board.run(3)
        stands_still(board, port.flashes)
        return
    board.run(400)
    assert host.ended["state"] == "DONE"
    assert len(between_releases(board)) == 8
    assert board.watchdog.mode == "reset"


# --- SHA-256 --------------------------------------------------------------------------------------------------------


WRONG = SimpleNamespace(digest=lambda: bytes(32))
HASHLIBS: dict[str, Any] = {
    "no module": None,
    "SHA-1 only": hashes("sha1"),
    "no such function": SimpleNamespace(),
    "raises RuntimeError": SimpleNamespace(new=raising(RuntimeError("no"))),
    "raises MemoryError": SimpleNamespace(new=raising(MemoryError())),
    "another kind of result": SimpleNamespace(new=lambda *_: None),
    "a wrong digest": SimpleNamespace(new=lambda *_: WRONG),
    "right for nothing, wrong for more": SimpleNamespace(
        new=lambda _, data: hashlib.sha256(data) if not data else WRONG
    ),
}


@each("found", HASHLIBS)
def test_whatever_hashlib_does_our_own_takes_its_place(found: str) -> None:
    board, host = started(TEXT)
    board.spoil = lambda modules: modules.update(hashlib=HASHLIBS[found])
    board.run(400)
    assert host.ended["state"] == "DONE"


def test_where_even_our_own_is_wrong_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    board, _ = started(TEXT)
    board.spoil = lambda modules: modules.update(hashlib=None)
    with monkeypatch.context() as damaged:
        damaged.setattr("pmagent.firmware.sha256.sha256", lambda _: "0" * 64)
        board.run(3)
    stands_still(board, OTHER)


@given(st.binary(max_size=300))
def test_the_known_digests_and_all_others_are_right(data: bytes) -> None:
    assert sha256(data) == hashlib.sha256(data).hexdigest()
    assert all(hashlib.sha256(known).hexdigest() == digest for known, digest in loop.KNOWN)


# --- a module that is missing, a part that it lacks, a call that raises ---------------------------------------------


SPOILT: dict[str, tuple[int, Spoil]] = {
    "usb_hid is missing": (USB, gone("usb_hid")),
    "usb_hid has no devices": (USB, lacks("usb_hid", "devices")),
    "usb_hid shows nothing": (USB, holds("usb_hid", "devices", ())),
    "usb_hid shows no mouse": (USB, holds("usb_hid", "devices", [SimpleNamespace(usage_page=1, usage=6)])),
    "usb_hid raises": (USB, holds("usb_hid", "devices", [SimpleNamespace()])),
    "usb_cdc is missing": (USB, gone("usb_cdc")),
    "usb_cdc has no data": (USB, lacks("usb_cdc", "data")),
    "usb_cdc has no console": (USB, lacks("usb_cdc", "console")),
    "usb_cdc refuses a setting": (USB, refuses("usb_cdc", "data", "timeout")),
    "usb_cdc cannot be read": (OTHER, refuses("usb_cdc", "data", "connected", reads=False)),
    "watchdog is missing": (WATCHDOG, gone("watchdog")),
    "watchdog has no mode": (WATCHDOG, holds("watchdog", "WatchDogMode", SimpleNamespace())),
    "watchdog is none": (WATCHDOG, holds("microcontroller", "watchdog", None)),
    "watchdog cannot be fed": (WATCHDOG, holds("microcontroller", "watchdog", SimpleNamespace(mode=None))),
    "watchdog refuses the time": (WATCHDOG, refuses("microcontroller", "watchdog", "timeout")),
    "watchdog refuses the mode": (WATCHDOG, refuses("microcontroller", "watchdog", "mode")),
    "nvm is none": (MEMORY, holds("microcontroller", "nvm", None)),
    "nvm is unknown": (MEMORY, lacks("microcontroller", "nvm")),
    "nvm holds nothing": (MEMORY, holds("microcontroller", "nvm", Memory(0))),
    "nvm cannot be written": (MEMORY, holds("microcontroller", "nvm", Memory(refuses=True))),
    "nvm forgets": (MEMORY, holds("microcontroller", "nvm", Memory(forgets=True))),
    "microcontroller is missing": (OTHER, gone("microcontroller")),
    "microcontroller has no cpu": (OTHER, lacks("microcontroller", "cpu")),
    "board has no switch": (PINS, lacks("board", "GP14")),
    "board has no light": (PINS, lacks("board", "GP2")),
    "board has no light but its own": (PINS, lacks("board", "GP2", LED="LED")),
    "digitalio raises": (PINS, one_pin("GP2")),
    "digitalio has no pull": (PINS, lacks("digitalio", "Pull")),
    "supervisor is missing": (OTHER, gone("supervisor")),
    "supervisor has no runtime": (OTHER, lacks("supervisor", "runtime")),
    "supervisor has no clock": (OTHER, lacks("supervisor", "ticks_ms")),
    "supervisor's clock raises": (OTHER, raises("supervisor", "ticks_ms")),
    "the settings cannot be read": (SETTINGS, lambda modules: modules.update(os=SimpleNamespace(
        getenv=raising(ValueError("no quotes")), urandom=modules_os().urandom))),
    "there is no chance": (OTHER, lambda modules: modules.update(os=without(modules_os(), "urandom"))),
    "adafruit_hid is missing": (FILES, gone("adafruit_hid")),
    "adafruit_hid has no mouse": (FILES, gone("adafruit_hid.mouse")),
    "the core is missing": (FILES, gone("firmware.core")),
    "sha256.py is missing": (FILES, gone("firmware.sha256")),
    "contract.py is missing": (OTHER, gone("firmware.contract")),
}  # fmt: skip


@each("what", SPOILT)
def test_what_fails_at_the_start_flashes_its_code_before_the_watchdog_runs(what: str) -> None:
    flashes, spoil = SPOILT[what]
    board, _ = started(TEXT)
    board.spoil = spoil
    board.run(3)
    if "light" in what and "own" not in what:
        assert (board.watchdog.mode, board.fed, board.reports) == (None, [], [])
        assert len(board.slept) == 3 * (2 * flashes + 1), "dark, but in the same rhythm"
    else:
        stands_still(board, flashes)


@each("what", ["busio is missing", "no such pin", "it raises"])
def test_a_uart_that_cannot_be_opened_flashes_the_code_of_the_pins(what: str) -> None:
    spoil = {
        "busio is missing": gone("busio"), "no such pin": lacks("board", "GP1"), "it raises": raises("busio", "UART")
    }[what]  # fmt: skip
    board, _ = started(TEXT, setting="uart")
    board.spoil = spoil
    board.run(3)
    stands_still(board, PINS)


PARTS = sorted(
    (name, part) for name, module in FakeBoard().modules().items() for part in vars(module) if not part.startswith("_")
)


def drawn(data: st.DataObject) -> Spoil:
    """Some of all that may be missing or raise."""
    spoilt: list[Spoil] = []
    for _ in range(data.draw(st.integers(1, 3))):
        name, part = data.draw(st.sampled_from(PARTS))
        spoilt.append(data.draw(st.sampled_from((gone(name), lacks(name, part), raises(name, part)))))
    return together(*spoilt)


def together(*spoilt: Spoil) -> Spoil:
    """All of them."""

    def spoil(modules: dict[str, Any]) -> None:
        for one in spoilt:
            with contextlib.suppress(AttributeError, TypeError):  # another has taken the module away
                one(modules)

    return spoil


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_whatever_is_missing_or_raises_no_watchdog_starts_it_again_and_again(data: st.DataObject) -> None:
    """Each module and each part, one or several at a time."""
    board, _ = started(TEXT)
    board.spoil = drawn(data)
    board.run(3)
    if board.watchdog.mode is None:
        assert len(set(board.flashes)) <= 1
        assert (board.fed, board.reports) == ([], [])
        assert board.slept, "it says so for ever"
    else:
        assert board.fed == [1, 2, 3]


# --- boot.py --------------------------------------------------------------------------------------------------------

BOOTS: dict[str, tuple[int, Spoil]] = {
    "usb_midi is missing": (0, gone("usb_midi")),
    "usb_midi raises": (USB, raises("usb_midi", "disable")),
    "the button's pin is missing": (USB, lacks("board", "GP15")),
    "the board cannot be named": (USB, lacks("supervisor", "set_usb_identification")),
    "usb_hid raises": (USB, raises("usb_hid", "enable")),
    "usb_hid lacks a mouse": (USB, holds("usb_hid", "Device", SimpleNamespace(KEYBOARD="keyboard"))),
    "the drive stays": (USB, raises("storage", "disable_usb_drive")),
    "storage is missing": (USB, gone("storage")),
    "the console stays": (CONSOLE, raises("usb_cdc", "enable")),
    "storage and usb_hid are missing": (CONSOLE, together(gone("storage"), gone("usb_hid"))),
}  # fmt: skip


@each("setting", ["usb", "uart"])
@each("what", BOOTS)
def test_what_fails_in_boot_is_seen_and_opens_nothing(what: str, setting: str) -> None:
    flashes, spoil = BOOTS[what]
    board = FakeBoard(setting=setting)
    board.spoil = spoil
    board.boot()
    board.spoil = lambda _: None
    assert (board.console is None) == (flashes != CONSOLE)
    board.run(3)
    if flashes:
        stands_still(board, flashes)
        assert board.line is None
    else:
        assert board.fed == [1, 2, 3]


@given(st.data(), st.sampled_from(("usb", "uart")))
@settings(max_examples=examples(100), deadline=None)
def test_whatever_fails_in_boot_the_board_works_or_says_so_and_shows_no_line(data: st.DataObject, setting: str) -> None:
    board = FakeBoard(setting=setting)
    board.spoil = drawn(data)
    board.boot()
    board.spoil = lambda _: None
    board.run(3)
    if board.watchdog.mode is None:
        assert set(board.flashes) <= {CONSOLE, USB}
        assert board.line is None
    else:
        assert board.fed == [1, 2, 3]
        assert "no drive" in board.did


def test_where_boot_is_not_run_at_all_the_board_has_a_console_and_says_so() -> None:
    board = FakeBoard()
    board.spoil = lambda modules: modules.update({"firmware.boot": None})
    board.boot()
    board.spoil = lambda _: None
    board.run(3)
    stands_still(board, CONSOLE)


def test_a_repair_flashes_once_and_has_its_console() -> None:
    board = FakeBoard()
    board.inputs["GP15"] = lambda: False
    board.boot()
    board.run(3)
    stands_still(board, CONSOLE)


# --- a boot keyboard ------------------------------------------------------------------------------------------------


def test_a_boot_keyboard_is_alone_in_its_plug_types_and_has_no_pointer() -> None:
    board = FakeBoard(setting="uart", boot_keyboard="yes")
    board.boot()
    assert [did for did in board.did if did.startswith("hid")] == ["hid(('keyboard',),){'boot_device': 1}"]
    assert (board.console, board.line, board.usages) == (None, None, [6])
    assert "no drive" in board.did
    host = HostOnBoard(board, TEXT)
    board.run(500)
    assert isinstance(host.outcomes[-1], HidEnded)
    assert host.outcomes[-1].state == "DONE"
    assert {usage for usage, _ in board.reports} == {6}
    pointing = FakeBoard(setting="uart", boot_keyboard="yes")
    pointing.boot()
    host = HostOnBoard(pointing, MouseClick(button="left"))
    pointing.run(500)
    assert next(one.code for one in host.outcomes if isinstance(one, HidRefused)) == "UNTYPABLE"


@each("line, wanted", [("usb", "yes"), (None, "yes"), ("uart", "perhaps")])
def test_a_boot_keyboard_beside_a_line_in_the_plug_is_a_wrong_setting(line: str | None, wanted: str) -> None:
    board = FakeBoard(setting=line, boot_keyboard=wanted)
    board.boot()
    board.run(3)
    stands_still(board, SETTINGS)


def test_a_repair_has_drive_and_console_whatever_the_settings_want() -> None:
    board = FakeBoard(setting="uart", boot_keyboard="yes")
    board.inputs["GP15"] = lambda: False
    board.boot()
    assert board.console is not None
    assert "no drive" not in board.did
    assert not any("boot_device" in did for did in board.did)


def test_a_machine_that_goes_between_the_look_and_the_first_use_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``adafruit_hid`` looks for a machine when a keyboard is made, and sleeps a second where there is none."""
    board = FakeBoard()
    board.usb_connected = False
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with board.program():
        hands = importlib.import_module("firmware.hands").Hands(sys.modules["usb_hid"].devices)
        assert not hands.caps_lock()
    assert slept == []


# --- after the start ------------------------------------------------------------------------------------------------


@each("where", ["the line", "the keyboard", "the core"])
def test_a_program_that_fails_later_flickers_until_the_watchdog_resets_it(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, _ = started(TEXT)
    assert board.line is not None
    failed_at: list[int] = []

    def fail(*_: Any) -> bytes:
        if board.rounds >= 50:
            failed_at.append(board.rounds)
            board.let_pass(board.round_ms)  # the round that fails takes its time, too
            raise ValueError("a fault")
        return b""

    if where == "the line":
        board.line.incoming.extend(b"~")
        monkeypatch.setattr(board.line, "read", fail)
    elif where == "the keyboard":
        board.on_report = fail  # type: ignore[assignment]
    else:
        hear = Core._hear
        monkeypatch.setattr(Core, "_hear", lambda core, data: hear(core, fail() + data))
    with contextlib.suppress(ValueError):  # where not even letting go works
        board.run(600)
    light = board.pins["GP2"].history
    assert max(board.fed) <= failed_at[0], "the watchdog starts it anew"
    changes = sum(one != other for one, other in itertools.pairwise(light))
    assert changes > 6, "it is seen that it has failed"
    assert light[-1] is False
    assert all(report in RELEASE for report in board.reports)
