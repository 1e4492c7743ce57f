"""The board's own program, ``code.py`` and ``boot.py``, with the real ``adafruit_hid``: all but the board is real."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText, is_typable
from pmagent.firmware import contract
from pmagent.firmware.core import Core
from tests.support.board import FakeBoard
from tests.support.board_host import FREE, ONE, RELEASE, Host, between_releases, started
from tests.support.cases import each
from tests.support.firmware_board import TIME

EVERY = "".join(filter(is_typable, map(chr, range(128))))


def by_adafruit(act: Callable[[Any, Any, Any], None]) -> list[tuple[int, bytes]]:
    """The reports that the real library sends by itself."""
    board = FakeBoard()
    with board.program():
        from adafruit_hid.keyboard import Keyboard
        from adafruit_hid.keyboard_layout_us import KeyboardLayoutUS
        from adafruit_hid.mouse import Mouse
        from usb_hid import devices

        keyboard = Keyboard(devices)
        act(keyboard, KeyboardLayoutUS(keyboard), Mouse(devices))
    return board.reports


def strokes(reports: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """As a machine sees them: each key that goes down, and the modifiers that are down then."""
    found: list[tuple[int, int]] = []
    down = b""
    for usage, report in reports:
        assert usage == 6
        found.extend((report[0], key) for key in report[2:] if key and key not in down)
        down = report[2:]
    assert not any(reports[-1][1]), "a key is left down"
    return found


@each("text", [EVERY[:50], EVERY[50:], "aa bb\n", "AaAa"])
def test_text_goes_out_as_the_library_would_write_it(text: str) -> None:
    board, host = started(TypeText(text=text))
    board.run(480)
    own = strokes(between_releases(board))
    assert own == strokes(by_adafruit(lambda _, layout, __: layout.write(text)))
    assert len(own) == len(text)
    assert host.ended["state"] == "DONE"
    assert host.ended["done"] == host.ended["of"] == 2 * len(text)


def test_combinations_movements_and_clicks_go_out_as_the_library_would_send_them() -> None:
    def combo(keyboard: Any, _: Any, __: Any) -> None:
        from adafruit_hid.keycode import Keycode

        keyboard.send(Keycode.CONTROL, Keycode.ALT, Keycode.DELETE)

    cases: list[tuple[Action, Callable[[Any, Any, Any], None]]] = [
        (KeyCombo(keys=["ctrl", "alt", "delete"]), combo),
        (MouseMove(x=-300, y=200), lambda _, __, mouse: mouse.move(-300, 200)),
        (MouseClick(button="middle"), lambda _, __, mouse: mouse.click(mouse.MIDDLE_BUTTON)),
    ]
    for action, act in cases:
        board, host = started(action)
        board.run(320)
        assert between_releases(board) == by_adafruit(act)
        assert host.ended["state"] == "DONE"


def test_every_key_has_the_library_s_code() -> None:
    from pmagent.contracts.pla import KEYS
    from pmagent.firmware.layout import MODIFIERS, key

    with FakeBoard().program():
        from adafruit_hid.keycode import Keycode

        words = {
            "ctrl": "CONTROL", "up": "UP_ARROW", "down": "DOWN_ARROW", "left": "LEFT_ARROW", "right": "RIGHT_ARROW",
        }
        digits = dict(enumerate(("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")))
        for name in KEYS:
            code = getattr(Keycode, words.get(name) or (digits[int(name)] if name.isdigit() else name.upper()))
            if name in MODIFIERS:
                assert MODIFIERS[name] == Keycode.modifier_bit(code)
            else:
                assert key(name) == code


def test_it_boots_with_everything_released_dark_and_fed() -> None:
    board = FakeBoard()
    board.run(50)
    assert board.reports == RELEASE * 2  # at boot, and when the line is opened; the end lets go once more
    assert board.pins["GP2"].history[0] is False
    assert not any(board.pins["GP2"].history)
    assert board.pins["GP14"].pull == "up"
    assert board.fed == list(range(1, 51))
    assert board.watchdog.mode == "reset"
    assert 4 < board.watchdog.timeout <= 8.3
    assert board.runtime.autoreload is False


def test_the_light_is_on_while_it_is_armed() -> None:
    board, host = started(TypeText(text="abc"))
    host.requests.append(lambda _: {"op": "disarm"})
    board.run(400)
    light = board.pins["GP2"].history
    on = [number for number, lit in enumerate(light) if lit]
    assert on == list(range(on[0], on[-1] + 1))
    assert len(on) > 50
    assert light[-1] is False


@each("after", [1, 2, 3, 7])
def test_a_kill_between_any_two_reports_is_the_last_of_the_typing(after: int) -> None:
    board, host = started(TypeText(text="Typed by nobody"))
    pressed = len(RELEASE) * 2 + after
    board.inputs["GP14"] = lambda: len(board.reports) >= pressed  # pressed, cut or unplugged
    board.run(400)
    assert board.reports[pressed:] == RELEASE * 2  # by the core, and when the program ended
    assert (host.ended["state"], host.ended["code"], host.ended["done"]) == ("ABORTED", "KILLED", after)
    assert board.memory[0] != 0
    assert board.pins["GP2"].value is False


def test_a_kill_outlives_any_reset_but_power_on() -> None:
    memory = bytearray(8)
    board, _ = started(TypeText(text="a"), memory=memory)
    board.inputs["GP14"] = lambda: board.rounds > 5
    board.run(10)
    for reason in ("WATCHDOG", "SOFTWARE", "RESET_PIN", "UNKNOWN"):
        board, host = started(TypeText(text="a"), memory=memory, reason=reason)
        board.run(300)
        assert not any(report != FREE for report in board.keys)
        assert host.refusals == ["KILLED"] * 3
    board, host = started(TypeText(text="a"), memory=memory)
    board.run(300)
    assert host.ended["state"] == "DONE"
    assert memory[0] == 0


@each("reload", ["AUTO_RELOAD", "SUPERVISOR_RELOAD", "REPL_RELOAD"])
def test_a_kill_outlives_a_reload_of_the_program(reload: str) -> None:
    """After one the board still says that it was powered on: that was before the kill."""
    memory = bytearray(8)
    board, _ = started(TypeText(text="a"), memory=memory)
    board.inputs["GP14"] = lambda: board.rounds > 5
    board.run(10)
    board, host = started(TypeText(text="a"), memory=memory)
    board.run_reason = f"supervisor.RunReason.{reload}"
    board.run(300)
    assert not any(report != FREE for report in board.keys)
    assert host.refusals == ["KILLED"] * 3


def test_a_program_that_is_loaded_again_is_another_boot_disarmed_and_knows_of_nothing() -> None:
    board, host = started(TypeText(text="a" * 40))
    board.run(300)
    assert "ended" not in [line.get("op") for line in host.told if line]
    again = FakeBoard()
    again.run_reason = "supervisor.RunReason.SUPERVISOR_RELOAD"
    versions = {"contract_version": contract.CONTRACT_VERSION, "contract_hash": contract.CONTRACT_HASH}
    asked = Host(
        again, lambda _: {"op": "hello", **versions, "time": TIME}, lambda _: {"op": "status", "execution_id": ONE},
        lambda _: {"op": "commit", "boot_id": host.boot_id, "execution_id": ONE, "digest": "0" * 64},
    )
    again.run(200)
    assert asked.boot_id not in ("", host.boot_id)
    assert again.reports == RELEASE * (len(again.reports) // 2)
    told = [line for line in asked.told if line and "execution" in line]
    assert [(line["status"]["led_state"], line["execution"]["state"]) for line in told] == [(False, "NONE")]
    assert asked.refusals == ["BOOT_MISMATCH"]


@each("error, code", [(OSError("USB busy"), "USB"), (MemoryError(), "MEMORY")])
def test_a_report_that_is_not_taken_ends_the_typing(error: Exception, code: str) -> None:
    board, host = started(TypeText(text="abc"))

    def fail() -> None:
        if len(board.reports) == 6:
            board.reports.append((0, b""))  # once
            raise error

    board.on_report = fail
    board.run(400)
    at = board.reports.index((0, b""))
    assert board.reports[at + 1 :] == RELEASE * 2
    assert (host.ended["state"], host.ended["code"], host.ended["done"]) == ("ABORTED", code, 2)
    assert len(board.fed) == 400


def test_where_not_even_letting_go_works_the_program_ends() -> None:
    """Then nothing feeds the watchdog any more, and its reset takes the device away from the machine."""
    board, _ = started(TypeText(text="abcdef"))

    def fail() -> None:
        if len(board.reports) == 7:
            raise ValueError("a fault of the firmware")

    board.on_report = fail
    with pytest.raises(ValueError, match="a fault"):
        board.run(600)
    assert len(board.reports) == 7
    assert board.pins["GP2"].value is False


def test_a_kill_is_written_down_though_not_even_letting_go_works() -> None:
    """The program ends then, and the watchdog's reset is to take nothing back."""
    board, _ = started(TypeText(text="abcdef"))
    board.round_ms = 20  # so that letting go is due in the very round that hears of it
    board.inputs["GP14"] = lambda: len(board.reports) >= 7

    def fail() -> None:
        if len(board.reports) >= 7:
            raise ValueError("a fault of the firmware")

    board.on_report = fail
    with pytest.raises(ValueError, match="a fault"):
        board.run(600)
    again, host = started(TypeText(text="a"), memory=board.memory, reason="WATCHDOG")
    again.run(300)
    assert not any(report != FREE for report in again.keys)
    assert host.refusals == ["KILLED"] * 3


def test_a_kill_is_written_down_though_the_core_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    board, _ = started(TypeText(text="abcdef"))
    board.inputs["GP14"] = lambda: 7 <= len(board.reports) <= 9
    hear = Core._hear

    def fail(core: Core, received: bytes) -> None:
        if core.killed:
            raise ValueError("a fault of the firmware")
        hear(core, received)

    with monkeypatch.context() as faulty:
        faulty.setattr(Core, "_hear", fail)
        board.run(600)
    again, host = started(TypeText(text="a"), memory=board.memory, reason="WATCHDOG")
    again.run(300)
    assert not any(report != FREE for report in again.keys)
    assert host.refusals == ["KILLED"] * 3


def test_a_fault_in_the_loop_types_nothing_more_and_starves_the_watchdog() -> None:
    board, host = started(TypeText(text="abcdef"))
    host.requests.append(lambda boot_id: {"op": "arm", "boot_id": boot_id, "lease_ms": 2000})
    failed: list[int] = []

    def fail(number: int) -> None:
        if len(board.reports) == 7 and not failed:
            failed.append(number)
            raise ValueError("a fault of the firmware")

    host.also = fail
    board.run(600)
    assert board.reports[7:9] == RELEASE
    assert all(report in RELEASE for report in board.reports[7:])
    assert max(board.fed) <= failed[0]
    assert (host.ended["state"], host.ended["code"]) == ("ABORTED", "WATCHDOG")
    assert host.refusals == ["WATCHDOG"]
    assert board.pins["GP2"].value is False


def test_an_interrupt_lets_go() -> None:
    board, _ = started(TypeText(text="abcdef"))

    def interrupt() -> None:
        if len(board.reports) == 7:
            board.on_report = lambda: None
            raise KeyboardInterrupt

    board.on_report = interrupt
    with pytest.raises(KeyboardInterrupt):
        board.run(600)
    assert board.reports[7:] == RELEASE
    assert board.pins["GP2"].value is False


def test_a_host_that_does_not_read_holds_up_nothing() -> None:
    board, host = started(TypeText(text="abc"))
    assert board.line is not None
    board.line.reads = False
    boot_ids: list[str] = []

    def peek(_: int) -> None:
        if not boot_ids and board.line is not None and b"hello" in board.line.kept:
            boot_ids.append(json.dumps(bytes(board.line.kept).decode()))

    host.also = peek
    board.run(2000)
    assert len(board.fed) == 2000
    assert len(board.line.kept) <= 64


def test_a_machine_that_sleeps_is_not_waited_for() -> None:
    board, host = started(TypeText(text="abcdef"))
    board.usb_connected = False
    board.run(300)
    assert board.reports == []
    assert host.refusals == ["USB", "USB"]
    assert len(board.fed) == 300


def test_a_machine_that_falls_asleep_ends_the_typing() -> None:
    board, host = started(TypeText(text="abcdef"))

    def sleep(_: int) -> None:
        board.usb_connected = len(board.reports) < 7

    host.also = sleep
    board.run(400)
    assert len(board.reports) == 7
    assert (host.ended["code"], host.ended["done"]) == ("USB", 3)


def test_caps_lock_is_seen() -> None:
    board, host = started(TypeText(text="abc"))
    board.caps_lock = True
    board.run(300)
    assert host.refusals == ["CAPS_LOCK"]


def test_with_a_console_it_is_no_device() -> None:
    board = FakeBoard(console=True)
    board.run(100)
    assert (board.rounds, board.reports, board.watchdog.mode) == (0, [], None)
    assert set(board.flashes) == {1}


def test_without_its_line_it_does_not_start() -> None:
    board = FakeBoard()
    board.line = None
    board.run(10)
    assert (board.rounds, board.reports, board.watchdog.mode) == (0, [], None)
    assert board.flashes == [5] * 10
    assert board.pins["GP2"].value is False


@each("hashed", ["wrong", "missing"])
def test_a_board_without_a_right_sha256_uses_ours(hashed: str) -> None:
    from pmagent.firmware.loop import checked
    from pmagent.firmware.sha256 import sha256

    fast = (lambda _: "0" * 64) if hashed == "wrong" else None
    assert checked(fast, sha256) is sha256


def test_boot_shows_a_keyboard_a_mouse_and_the_line_only() -> None:
    board = FakeBoard()
    with board.program("boot") as boot:
        boot.main()
    assert board.did == [
        "identify('pmagent', 'PLA keyboard')", "no midi", "hid(('keyboard', 'mouse'),)",
        "cdc{'console': False, 'data': False}", "no drive", "cdc{'console': False, 'data': True}",
    ]  # fmt: skip
    assert board.pins == {}
    assert board.runtime.autoreload is False


def test_boot_for_repair_has_a_drive_and_a_console_and_no_line() -> None:
    board = FakeBoard()
    board.inputs["GP15"] = lambda: False
    with board.program("boot") as boot:
        boot.main()
    assert board.did[-1] == "cdc{'console': True, 'data': False}"


def test_where_circuitpython_failed_it_starts_anew_instead_of_with_a_console() -> None:
    board = FakeBoard()
    with board.program("safemode") as safemode:
        safemode.main()
    assert board.did == ["reset"]
