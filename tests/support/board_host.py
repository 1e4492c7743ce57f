"""A host for a board without a board (``tests.support.board``), and what it has typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pmagent.contracts.pla import Action, declared, digest
from pmagent.firmware import contract
from pmagent.firmware.lines import LineReader, encode
from tests.support.board import FakeBoard, Line
from tests.support.board_uart import Uart
from tests.support.firmware_board import TIME, compact, document

FREE = bytes(8)
RELEASE = [(6, FREE), (2, bytes(4))]
ONE = "exec-00000001"


class Host:
    """The other end of the line: sends a request each fortieth round, and knows the answers."""

    def __init__(self, board: FakeBoard, *requests: Callable[[str], dict[str, Any]]) -> None:
        self.board, self.requests = board, list(requests)
        self.number = 0
        self.boot_id = ""
        self.told: list[Any] = []
        self.reader = LineReader()
        self.also: Callable[[int], None] = lambda _: None
        board.each_round = self.round

    def round(self, number: int) -> None:
        line = self.line
        for heard in self.reader.feed(bytes(line.sent)):
            self.told.append(heard)
            if heard is not None and isinstance(heard.get("hello"), dict):
                self.boot_id = heard["hello"]["boot_id"]  # type: ignore[index]
        line.sent.clear()
        if number % 40 == 20 and self.requests:
            self.number += 1
            line.incoming.extend(encode({"n": self.number, **self.requests.pop(0)(self.boot_id)}))
        self.also(number)

    @property
    def line(self) -> Line | Uart:
        """The line that the board has opened."""
        line = self.board.uart or self.board.line
        assert line is not None
        return line

    @property
    def refusals(self) -> list[str]:
        """The errors that it was answered."""
        return [line["error"] for line in self.told if line and line.get("ok") is False]

    @property
    def ended(self) -> dict[str, Any]:
        """How the execution ended."""
        found = [line for line in self.told if line and line.get("op") == "ended"]
        assert len(found) == 1
        return found[0]  # type: ignore[no-any-return]


def typing(action: Action) -> list[Callable[[str], dict[str, Any]]]:
    """The requests that lead to an action, on a machine with a US layout."""
    action = declared(action, "us")
    versions = {"contract_version": contract.CONTRACT_VERSION, "contract_hash": contract.CONTRACT_HASH}
    text = compact(document(action, ONE))
    pieces = [text[at : at + 512] for at in range(0, len(text), 512)]
    named = {"execution_id": ONE, "digest": digest(action)}

    def part(number: int) -> Callable[[str], dict[str, Any]]:
        rest = {**named, "part": number, "parts": len(pieces), "data": pieces[number]}
        return lambda boot_id: {"op": "prepare", "boot_id": boot_id, **rest}

    return [
        lambda _: {"op": "hello", **versions, "time": TIME},
        *(part(number) for number in range(len(pieces))),
        lambda boot_id: {"op": "arm", "boot_id": boot_id, "lease_ms": 2000},
        lambda boot_id: {"op": "commit", "boot_id": boot_id, **named},
    ]


def started(
    action: Action, *, memory: bytearray | None = None, reason: str = "POWER_ON", setting: str | None = None,
    fifo: int = 32,
) -> tuple[FakeBoard, Host]:  # fmt: skip
    """A board, and a host that has something typed."""
    board = FakeBoard(reason, memory, setting=setting, fifo=fifo)
    return board, Host(board, *typing(action))


def between_releases(board: FakeBoard) -> list[tuple[int, bytes]]:
    """The reports of the action: after those of boot and hello, before those of its end and the program's."""
    assert board.reports[:4] == board.reports[-4:] == RELEASE * 2
    return board.reports[4:-4]
