"""The device to try things with: it shows what a machine would show, and loses what it was told to lose."""

from __future__ import annotations

import io
import json
import os
import select
from pathlib import Path
from typing import Any

from pmagent.actors.pla.wire.lines import LineReader, encode
from pmagent.contracts.pla import KeyCombo, TypeText
from pmagent.firmware.core import FIRMWARE_VERSION
from pmagent.pla.device import PretendDevice
from pmagent.pla.lossy_line import LossyLine
from pmagent.pla.typed import Screen
from tests.support.cases import each
from tests.support.pla_wired import TIME, Wired, commit

EVERYTHING = "".join(chr(code) for code in range(32, 127)) + "\n\taaAA"


def shown(reports: list[tuple[object, ...]]) -> str:
    """The text on a screen after these reports."""
    screen = Screen()
    found = ""
    for report in reports:
        match report:
            case ("keyboard", int(modifiers), tuple(keycodes)):
                found += screen.take(modifiers, keycodes)
            case ("release",):
                screen.release()
    return found


def test_the_screen_shows_what_the_firmware_was_given_to_type() -> None:
    text = TypeText(text=EVERYTHING)
    wired = Wired().prepared(text)
    assert wired.perform(commit(text)).state == "DONE"
    assert shown(wired.typed) == EVERYTHING


@each("keys", [["ctrl", "c"], ["alt", "f4"], ["gui"], ["up"], ["escape"], ["backspace"], ["f12"]])
def test_commands_show_no_character(keys: list[str]) -> None:
    combination = KeyCombo(keys=keys)
    wired = Wired().prepared(combination)
    assert wired.perform(commit(combination)).state == "DONE"
    assert shown(wired.typed) == ""


def test_a_key_that_stays_down_is_one_character() -> None:
    screen = Screen()
    assert [screen.take(0, (4,)), screen.take(0, (4, 5)), screen.take(0, ()), screen.take(2, (4,))] == [
        "a", "b", "", "A",
    ]


def test_just_the_answer_to_the_next_commit_is_lost_however_it_is_cut() -> None:
    lossy = LossyLine()
    lossy.swallow()
    assert lossy.hear(b"x\n" + encode({"n": 6, "op": "ping"}) + encode({"n": 7, "op": "commit"})) == [
        "damaged", "ping", "commit",
    ]  # fmt: skip
    said = encode({"re": 6, "ok": True}) + encode({"re": 7, "ok": True}) + encode({"op": "ended"})
    heard = b"".join(lossy.say(said[at : at + 7]) for at in range(0, len(said), 7))
    assert heard == encode({"re": 6, "ok": True}) + encode({"op": "ended"})
    assert lossy.say(b"and so on") == b"and so on"


def test_nothing_is_lost_without_being_told_to() -> None:
    lossy = LossyLine()
    lossy.hear(encode({"n": 7, "op": "commit"}))
    assert lossy.say(encode({"re": 7})[:9]) == encode({"re": 7})[:9]


def test_words_that_are_no_commands_change_nothing(tmp_path: Path) -> None:
    told = io.BytesIO()
    device = PretendDevice(tmp_path / "device", ("pretend-device", "1.0.0", "ab" * 32), told, None)
    reading, writing = os.pipe()
    try:
        os.write(writing, b"explode\n_boot\n\nkill \nnever finished")
        os.close(writing)
        device.run(reading)
    finally:
        os.close(reading)
    events = [json.loads(line) for line in told.getvalue().splitlines()]
    assert [event["unknown"] for event in events if "unknown" in event] == ["explode", "_boot", ""]
    assert [event["did"] for event in events if "did" in event] == ["kill"]
    assert not (tmp_path / "device").is_symlink(), "its terminal is gone with it"


def test_it_says_which_firmware_it_runs_and_nothing_but_power_takes_its_kill_back(tmp_path: Path) -> None:
    device = PretendDevice(tmp_path / "device", ("pretend-device", "1.0.0", "ab" * 32), io.BytesIO(), None)

    def hello() -> dict[str, object]:
        line = os.open(tmp_path / "device", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            device._step()
            asked = {"n": 1, "op": "hello", "contract_version": "1.0.0", "contract_hash": "ab" * 32, "time": TIME}
            os.write(line, encode(asked))
            reader, answers = LineReader(), list[dict[str, Any]]()
            while not answers:  # the kernel takes its time to pass on what is written
                device._step()
                if select.select([line], [], [], 0.01)[0]:
                    answers = [one for one in reader.feed(os.read(line, 4096)) if isinstance(one, dict) and "re" in one]
            [answer] = answers
        finally:
            os.close(line)
        device._step()
        found: dict[str, object] = answer["hello"]
        return found

    first = hello()
    assert (first["firmware_version"], first["kill_switch_state"]) == (FIRMWARE_VERSION, "ARMED")
    for words, switch in (
        (("kill", "restore"), "DISABLED"), (("reset",), "DISABLED"), (("unplug", "plug"), "ARMED"),
        (("kill", "unplug", "plug"), "DISABLED"), (("restore", "unplug", "plug"), "ARMED"),
    ):  # fmt: skip
        for word in words:
            device.obey(word)
        assert hello()["kill_switch_state"] == switch, words
    device.obey("unplug")
