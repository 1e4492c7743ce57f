"""The two ends of a line that is carried: over a place for letters that is slow, cut off or stands still, the bytes
come whole, in order and once; and nothing reaches the device longer than the lease after the holder wanted it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.wire.carried import LEASE, Carrier, Garbled, Sender
from pmagent.events.attempts import Letter
from pmagent.events.lease import SECOND
from tests.support.effort import examples

STEPS = st.sampled_from(
    ["holder", "holder late", "worker", "worker late", "say", "write", "pass", "wait", "stand still"]
)
NOTHING = Letter(0, 0, b"", 0)


@dataclass
class World:
    """Both ends, and the place. A late letter is one whose statement runs now, and whose answer never comes."""

    now: int = 5 * SECOND
    down: Letter = NOTHING
    up: Letter = NOTHING
    written: bytes = b""
    wanted: int = 0
    typed: bytes = b""
    said: bytes = b""
    heard: bytes = b""

    def __post_init__(self) -> None:
        self.holder, self.worker = Sender(self.now), Carrier()

    def do(self, step: str, size: int) -> None:
        """One step."""
        match step:
            case "holder" | "holder late":
                if self.holder.over(self.now):
                    return
                self.down, came = self.holder.letter(), self.up
                self.wanted = self.now
                if step == "holder":
                    self.heard += self.holder.came(came, self.now)
            case "worker":
                letter, came = self.worker.letter(self.now), self.down
                self.up = letter
                self.worker.came(came)
                if self.worker.live(self.now):
                    data = self.worker.taken(came)
                    assert not data or self.now <= self.wanted + LEASE, "it is too late to type that"
                    self.typed += data
            case "worker late":
                self.up = self.worker.letter(self.now)
            case "say" if self.worker.has_room:
                more = bytes(n % 251 for n in range(len(self.said), len(self.said) + size))
                self.worker.put(more)
                self.said += more
            case "write" if self.holder.is_clear and not self.holder.over(self.now):
                more = bytes(n % 251 for n in range(len(self.written), len(self.written) + size))
                self.holder.put(more, self.now)
                self.written += more
            case "pass":
                self.now += SECOND // 20
            case "wait":
                self.now += SECOND // 2
            case "stand still":
                self.now += 3 * SECOND


@settings(max_examples=examples(800), deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(1, 3000)), max_size=80))
def test_bytes_come_in_order_once_and_in_time(steps: list[tuple[str, int]]) -> None:
    world = World()
    for step, size in steps:
        world.do(step, size)
        assert world.written.startswith(world.typed)
        assert world.said.startswith(world.heard)
        if world.worker.live(world.now):
            assert not world.holder.over(world.now) or not world.holder.is_clear, "it watches for longer than the lease"
    if not world.holder.over(world.now):
        for step in ("worker", "holder", "worker", "holder", "worker", "holder"):
            world.do(step, 0)
        assert (world.typed, world.heard) == (world.written, world.said)


def test_without_an_answer_of_the_holder_there_is_no_lease() -> None:
    worker, now = Carrier(), 5 * SECOND
    for sent in (now - SECOND, now, now + SECOND):
        worker.letter(sent)
        worker.came(Letter(0, 0, b"x", 0))
        assert not worker.live(sent)
    worker.came(Letter(2, 0, b"x", 0))
    assert worker.live(now + LEASE - LEASE // 10 - 1)
    assert not worker.live(now + LEASE - LEASE // 10)
    worker.letter(now + SECOND)
    worker.came(Letter(2, 0, b"x", 0))
    assert worker.ends == now + LEASE, "an answer that was known says nothing new"


def test_a_device_that_takes_nothing_ends_the_line() -> None:
    holder, now = Sender(0), 0
    holder.put(b"x", now)
    for sign in range(1, 30):
        now = sign * SECOND // 10
        holder.came(Letter(sign, 0, b"", 0), now)
        assert holder.over(now) == (now >= LEASE)


@pytest.mark.parametrize("letter", [Letter(1, 0, b"", 2), Letter(1, 1, b"x", 0), Letter(1, 0, bytes(200_000), 0)])
def test_a_letter_that_nobody_can_have_left_ends_the_line(letter: Letter) -> None:
    holder, worker = Sender(0), Carrier()
    holder.put(b"x", 0)
    worker.put(b"x")
    with pytest.raises(Garbled):
        holder.came(letter, 0)
    with pytest.raises(Garbled):
        read(worker, letter)


def read(worker: Carrier, letter: Letter) -> bytes:
    """The bytes in a letter of the holder."""
    worker.came(letter)
    return worker.taken(letter)
