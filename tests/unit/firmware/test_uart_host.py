"""Both real ends of the line, with a UART in between: the host's link and exchanges, and the board's own program."""

from __future__ import annotations

from random import Random

from pmagent.contracts.hid import HidArmed, HidEnded, HidPrepared
from pmagent.contracts.pla import TypeText
from pmagent.pla.typed import Screen
from tests.support.board import FakeBoard
from tests.support.board_host import RELEASE
from tests.support.board_line import Damage, HostOnBoard
from tests.support.cases import each
from tests.support.effort import rounds

WHOLE = TypeText(text="".join(map(chr, range(0x20, 0x7F))) * 10 + '\t"\\\n' * 18)
SHORT = TypeText(text="Typed once, or not.\n")


def shown(board: FakeBoard) -> str:
    """The text on the machine's screen after the keyboard's reports."""
    screen = Screen()
    found = ""
    for usage, report in board.reports:
        if usage == 6:
            found += screen.take(report[0], tuple(key for key in report[2:] if key))
    return found


@each("round_ms, rounds", [(1, 21_000), (4, 6_500), (15, 3_200)])
def test_the_longest_text_is_handed_over_ordered_and_typed(round_ms: int, rounds: int) -> None:
    """By quick and by slow boards: the line is fast enough for answers, the buffer large enough for requests."""
    board = FakeBoard(setting="uart")
    board.round_ms = round_ms
    host = HostOnBoard(board, WHOLE)
    board.run(rounds)
    assert [type(outcome) for outcome in host.outcomes] == [HidArmed, HidPrepared, HidEnded]
    assert (host.outcomes[-1].state, host.outcomes[-1].done) == ("DONE", 2 * len(WHOLE.text))
    assert shown(board) == WHOLE.text
    assert (host.link.damaged, host.commits) == (0, 1)
    assert board.uart is not None
    assert board.uart.lost == board.uart.longest_ms == 0


def test_a_host_that_is_killed_leaves_nothing_but_the_rest_of_its_lease() -> None:
    board = FakeBoard(setting="uart")
    host = HostOnBoard(board, WHOLE)
    gone_at: list[int] = []

    def pressed() -> bool:
        """The switch is looked at in each round; here that is when the host is killed."""
        if len(board.reports) == 500 and not gone_at:
            host.gone = True
            gone_at.append(board.rounds)
        return False

    board.inputs["GP14"] = pressed
    board.run(4000)
    light = board.pins["GP2"].history
    dark_at = max(number for number, lit in enumerate(light) if lit) + 1
    assert 1400 <= (dark_at - gone_at[0]) * 4 <= 2100
    assert board.reports[-4:] == RELEASE * 2
    assert WHOLE.text.startswith(shown(board))
    assert len(shown(board)) < len(WHOLE.text)


def noisy(random: Random) -> Damage:
    """Loses, flips and adds bytes; and now and then whole lines, or their ends."""

    def damage(data: bytes) -> bytes:
        kind = random.random()
        at = random.randrange(len(data))
        if kind < 0.008:
            return data[:at] + data[at + 1 :]
        if kind < 0.016:
            return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        if kind < 0.024:
            return data[:at] + b"\x00" + data[at:]
        if kind < 0.03:
            return data[:at]
        return data.replace(b"\n", b"") if kind < 0.036 else data

    return damage


@each("seed", range(rounds(24, 8)))
def test_on_a_noisy_wire_it_is_typed_once_or_in_part_and_the_host_is_told_no_more(seed: int) -> None:
    board = FakeBoard(setting="uart")
    host = HostOnBoard(board, SHORT, noisy(Random(seed)))
    board.run(2500)
    typed = shown(board)
    assert SHORT.text.startswith(typed)
    assert host.commits <= 1
    ended = [outcome for outcome in host.outcomes if isinstance(outcome, HidEnded)]
    for outcome in ended:
        assert outcome.done <= 2 * len(SHORT.text)
        assert (outcome.state == "DONE") <= (typed == SHORT.text)


def test_noisy_wires_are_of_every_kind() -> None:
    """Some let all pass, and some do not: the test above looks at both."""
    whole = 0
    damaged = 0
    for seed in range(8):
        board = FakeBoard(setting="uart")
        host = HostOnBoard(board, SHORT, noisy(Random(seed)))
        board.run(2500)
        whole += shown(board) == SHORT.text
        damaged += host.link.damaged > 0
    assert whole > 0
    assert damaged > 0
