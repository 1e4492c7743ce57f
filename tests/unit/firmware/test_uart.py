"""The board's own program with a UART for its line, so that it types on another machine than the host's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText
from pmagent.firmware.lines import LINE_MAX, encode
from tests.support.board import FakeBoard, Line
from tests.support.board_host import ONE, RELEASE, Host, between_releases, started, typing
from tests.support.board_uart import Uart
from tests.support.cases import each

LONG = TypeText(text="Approved, and long. " * 50)


def on_uart(action: Action, fifo: int = 32) -> tuple[FakeBoard, Host]:
    """A board with a UART, and a host that has something typed."""
    return started(action, setting="uart", fifo=fifo)


def uart_of(board: FakeBoard) -> Uart:
    """The line that it has opened."""
    assert board.uart is not None
    return board.uart


def status(host: Host) -> Any:
    """The device's last status that was heard."""
    return [line for line in host.told if line and line.get("op") == "status"][-1]


# --- settings.toml --------------------------------------------------------------------------------------------------


def test_the_uart_is_opened_as_documented_with_room_for_lines() -> None:
    board, _ = on_uart(LONG)
    board.run(10)
    uart = uart_of(board)
    assert (uart.pins, uart.baudrate) == (("GP0", "GP1"), 115_200)
    assert uart.size >= 2 * LINE_MAX
    assert board.watchdog.mode == "reset"


@each("setting", ["", "UART", "both", "usb "])
def test_a_setting_that_is_none_opens_nothing(setting: str) -> None:
    """boot.py shows no line, and the program does not begin."""
    board = FakeBoard(setting=setting)
    with board.program("boot") as boot:
        boot.main()
    assert board.did[-2:] == ["cdc{'console': False, 'data': False}", "no drive"]
    board.run(10)
    assert (board.rounds, board.reports, board.watchdog.mode) == (0, [], None)
    assert board.flashes == [3] * 10


def test_a_setting_that_is_none_is_told_on_the_console_of_a_repair(capsys: pytest.CaptureFixture[str]) -> None:
    board = FakeBoard(setting="both", console=True)
    board.run(10)
    assert board.flashes == [3] * 10
    assert 'PMAGENT_LINE is neither "usb" nor "uart"' in capsys.readouterr().out


@each("setting, console", [("uart", False), ("uart", True), ("usb", True)])
def test_with_a_uart_or_for_repair_boot_shows_no_line(setting: str, console: bool) -> None:
    board = FakeBoard(setting=setting)
    board.inputs["GP15"] = lambda: not console
    with board.program("boot") as boot:
        boot.main()
    assert [did for did in board.did if did.startswith("cdc")] == [f"cdc{{'console': {console}, 'data': False}}"]
    assert ("no drive" in board.did) is not console


def test_a_line_that_boot_has_shown_for_another_setting_is_not_taken() -> None:
    """A holder of that line could put the board into its bootloader."""
    board = FakeBoard(setting="uart")
    board.line = Line()
    board.run(10)
    assert (board.uart, board.reports, board.pins["GP2"].value) == (None, [], False)
    assert board.flashes == [5] * 10


def test_where_the_setting_cannot_be_read_boot_has_closed_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def getenv(*_: str) -> str:
        raise ValueError("what CircuitPython says of a value without quotes")

    board = FakeBoard()
    with board.program("boot") as boot, monkeypatch.context() as unread:
        unread.setattr(os, "getenv", getenv)
        boot.main()
    assert board.did[-3:] == ["cdc{'console': False, 'data': False}", "no drive", "no hid"]
    assert "without quotes" in capsys.readouterr().out


# --- typing ---------------------------------------------------------------------------------------------------------


@each("fifo", [32, 0])
@each(
    "action",
    [TypeText(text='echo "Hello"\n'), KeyCombo(keys=["ctrl", "c"]), MouseMove(x=300, y=-40), MouseClick(button="left")],
)
def test_what_is_typed_and_told_is_what_it_is_over_usb(action: Action, fifo: int) -> None:
    over_usb, asked_there = started(action)
    over_usb.run(400)
    board, host = on_uart(action, fifo)
    board.run(400)
    assert between_releases(board) == between_releases(over_usb)
    assert host.ended == asked_there.ended
    assert host.ended["state"] == "DONE"
    assert host.refusals == []
    assert None not in host.told
    assert board.fed == list(range(1, 401))


def test_the_whole_of_the_longest_text_arrives() -> None:
    board, host = on_uart(TypeText(text="Ab" * 512))
    alive(host)
    board.run(4800)
    assert host.ended == {**host.ended, "state": "DONE", "done": 2048, "of": 2048}
    assert uart_of(board).lost == 0


def alive(host: Host, until: Callable[[], bool] = lambda: False) -> None:
    """Have it renew the lease, each second or so, until then."""
    first = host.also

    def also(number: int) -> None:
        first(number)
        if number % 240 == 0 and host.boot_id and not until():
            host.requests.append(lambda boot_id: {"op": "ping", "boot_id": boot_id})

    host.also = also


@each("fifo, longest_ms", [(32, 0), (0, 3)])
def test_no_round_waits_for_the_line(fifo: int, longest_ms: int) -> None:
    """Not even where the chip buffers nothing: a status takes many rounds then, each with a look at the switch."""
    board, host = on_uart(LONG, fifo)
    alive(host)
    board.run(1500)
    uart = uart_of(board)
    assert uart.longest_ms <= longest_ms
    assert len([line for line in host.told if line and line.get("op") == "status"]) > 3


@each("fifo", [32, 0])
@each("after", [1, 4, 9])
def test_a_kill_while_a_long_line_is_being_written_is_the_last_of_the_typing(fifo: int, after: int) -> None:
    board, host = on_uart(LONG, fifo)
    pressed = [False]
    at: list[int] = []

    def ask(number: int) -> None:
        """For a status, the longest line, as the typing begins; the switch opens in the middle of the answer."""
        if len(board.reports) == len(RELEASE) * 2 + 1 and not at:
            at.append(number)
            host.line.incoming.extend(encode({"n": 900, "op": "status", "execution_id": ONE}))
        if at and not pressed[0] and len(host.reader._held[: host.reader._length]) > 40 * after:
            pressed[0] = True
            at.append(len(board.reports))

    host.also = ask
    board.inputs["GP14"] = lambda: pressed[0]
    board.run(900)
    assert board.reports[at[1] :] == RELEASE * 2  # by the core, and when the program ended
    assert (host.ended["state"], host.ended["code"]) == ("ABORTED", "KILLED")
    assert host.ended["done"] == at[1] - len(RELEASE) * 2
    assert board.memory[0] != 0


# --- the line's end -------------------------------------------------------------------------------------------------


def test_a_host_that_falls_silent_ends_the_typing_with_its_lease() -> None:
    """There is no DTR that would tell; that is what the lease is for."""
    board, host = on_uart(LONG)
    board.run(2500)
    light = board.pins["GP2"].history
    on = [number for number, lit in enumerate(light) if lit]
    assert 4 * len(on) == pytest.approx(2000, abs=12)
    assert (host.ended["state"], host.ended["code"]) == ("ABORTED", "LEASE")
    assert board.reports[-4:] == RELEASE * 2
    assert 200 < host.ended["done"] < host.ended["of"]


def test_a_disarm_ends_the_typing_at_once() -> None:
    """The host sends one when it lets go of the line."""
    board, host = on_uart(LONG)
    host.requests.append(lambda _: {"op": "disarm"})
    board.run(600)
    assert (host.ended["state"], host.ended["code"]) == ("ABORTED", "DISARMED")
    assert board.pins["GP2"].value is False


def test_what_a_host_left_unfinished_is_not_carried_out_when_the_next_begins() -> None:
    """The first has gone when its order had left but for the newline. Its lease still runs."""
    board = FakeBoard(setting="uart")
    *first, order = typing(TypeText(text="left behind"))
    host = Host(board, *first)
    number = len(first) + 1

    def dies_and_comes_back(at: int) -> None:
        if at == 220:
            host.line.incoming.extend(encode({"n": number, **order(host.boot_id)})[:-1])
        elif at == 300:
            host.line.incoming.extend(b"~\n" + encode({"n": 7000, **first[0]("")}))
            host.number = 7000
            host.requests.append(lambda _: {"op": "status", "execution_id": ONE})

    host.also = dies_and_comes_back
    board.run(400)
    assert host.refusals == []
    assert all(report in RELEASE for report in board.reports)
    [told] = [line for line in host.told if line and "execution" in line]
    assert told["execution"]["state"] == "NONE"
    assert told["status"]["error_state"]["error_count"] == 1


def test_a_lone_spoiler_is_no_damage() -> None:
    board, host = on_uart(TypeText(text="a"))
    host.also = lambda number: host.line.incoming.extend(b"~\n" if number == 1 else b"")
    board.run(500)
    assert host.ended["state"] == "DONE"
    assert status(host)["error_state"]["error_count"] == 0


# --- too much, and noise --------------------------------------------------------------------------------------------


def test_what_overflows_is_a_damaged_line_and_is_not_acted_on() -> None:
    """The machine holds up a report for longer than the buffer takes what comes meanwhile: an order and much else."""
    board = FakeBoard(setting="uart")
    *first, order = typing(TypeText(text="never ordered whole"))
    host = Host(board, *first)
    stray = b"".join([encode({"n": number, "op": "status"}) for number in range(800, 1000)])

    def flood(number: int) -> None:
        if number == 220:
            room = uart_of(board).size - 80  # the order's beginning has room, and its end has not
            ahead = stray[: stray.rindex(b"\n", 0, room) + 1]
            host.line.incoming.extend(ahead + encode({"n": 5000, **order(host.boot_id)}))
            board.let_pass(600)  # as a round that waits for the machine
            host.number = 6000
        elif number == 600:  # the first ends what has lost its end
            host.requests += [lambda _: {"op": "status", "execution_id": ONE}] * 2

    host.also = flood
    board.run(800)
    assert 20 < uart_of(board).lost < 163
    assert all(report in RELEASE for report in board.reports)
    [told] = [line for line in host.told if line and "execution" in line]
    assert told["execution"]["state"] == "NONE", "it never began, and was forgotten with the lease"
    assert told["status"]["error_state"]["error_count"] == 1


@each("where", range(0, 162, 23))
@each("noise", [b"", b"\x00", b"\xff\x00"])
def test_an_order_that_is_damaged_on_the_wire_is_counted_and_not_carried_out(where: int, noise: bytes) -> None:
    board = FakeBoard(setting="uart")
    *first, order = typing(TypeText(text="a"))
    host = Host(board, *first)

    def send(number: int) -> None:
        if number == 220:
            line = encode({"n": 9, **order(host.boot_id)})
            assert len(line) == 163
            host.line.incoming.extend(line[:where] + noise + line[where + 1 :])
            host.requests.append(lambda _: {"op": "status", "execution_id": ONE})
            host.number = 9

    host.also = send
    board.run(400)
    assert all(report in RELEASE for report in board.reports)
    [told] = [line for line in host.told if line and "execution" in line]
    assert told["execution"]["state"] == "PREPARED"
    assert told["status"]["error_state"]["error_count"] == 1
