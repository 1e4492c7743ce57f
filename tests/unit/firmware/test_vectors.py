"""The firmware does what the vectors say."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from pmagent.firmware.lines import crc16 as firmware_crc16
from pmagent.firmware.sha256 import sha256 as firmware_sha256
from tests.support import firmware_player as player
from tests.support.cases import each
from tests.support.firmware_vectors import FOLDER, crc16


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


EXCHANGES: list[dict[str, Any]] = load("exchanges.json")


def test_the_checksum_of_the_vectors_is_the_published_one() -> None:
    assert crc16(b"123456789") == firmware_crc16(b"123456789") == 0x4B37


def test_frames_are_read_as_the_vectors_say() -> None:
    frames = load("frames.json")
    assert len(frames["lines"]) > 150
    wrong = [text for case in frames["lines"] for text in player.frame(case)]
    wrong += [text for case in frames["streams"] for text in player.stream(case)]
    assert wrong == []


def test_digests_are_those_that_were_approved() -> None:
    assert [text for case in load("digests.json") for text in player.digested(case)] == []


@each("exchange", EXCHANGES)
def test_exchange(exchange: dict[str, Any]) -> None:
    assert player.play(exchange, lambda data: sha256(data).hexdigest()) == []


def test_no_two_exchanges_have_one_name() -> None:
    assert len({exchange["name"] for exchange in EXCHANGES}) == len(EXCHANGES) >= 21


def test_a_difference_is_found() -> None:
    """The player is no yes-man: any change of what is wanted shows."""
    for exchange in EXCHANGES:
        for at, step in enumerate(exchange["steps"]):
            for field, other in (("reports", [["release"]] * 9), ("tell", [{"re": 0}]), ("led", not step.get("led"))):
                changed = {**exchange, "steps": [*exchange["steps"][:at], {**step, field: other}]}
                assert player.play(changed, lambda data: sha256(data).hexdigest()), (exchange["name"], at, field)
            break


def test_sha256_without_a_library_is_sha256() -> None:
    for length in [*range(130), 1000, 1100]:
        data = bytes(number % 251 for number in range(length))
        assert firmware_sha256(data) == sha256(data).hexdigest()
