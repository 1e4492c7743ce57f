"""The vectors that both ends of the device's line are tested on, as they are expected: written by hand from
docs/hid-protocol.md, with a checksum, digests and documents that the firmware has no part in.

``python -m tests.support.firmware_vectors`` writes firmware/vectors/.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText, action_type, digest, payload
from tests.support.firmware_exchanges import exchanges

FOLDER = Path(__file__).parents[2] / "firmware" / "vectors"


def crc16(data: bytes) -> int:
    """CRC-16/MODBUS as its definition has it: polynomial 8005, most significant bit first, each byte and the sum
    mirrored, initial FFFF. The firmware and the host go by a table of the mirrored polynomial instead."""
    register = 0xFFFF
    for byte in data:
        register ^= int(f"{byte:08b}"[::-1], 2) << 8
        for _ in range(8):
            register = (register << 1 ^ (0x8005 if register & 0x8000 else 0)) & 0xFFFF
    return int(f"{register:016b}"[::-1], 2)


def line(body: str) -> str:
    """A line without its newline."""
    return f"{body}*{crc16(body.encode()):04x}"


TOO_LONG = line('{"data":"' + "x" * (2048 - 5 - 11) + '"}')
"""2,048 bytes without its newline, right in all else."""


def good(body: str) -> dict[str, Any]:
    """A line that is one."""
    return {"line": line(body), "object": json.loads(body)}


def damaged(text: str, damage: str) -> dict[str, Any]:
    """A line that is none: overlong, checksum or shape."""
    return {"line": text, "damage": damage}


def flipped(text: str) -> list[dict[str, Any]]:
    """Each single flipped bit of a line that leaves it text."""
    found = []
    for at, character in enumerate(text):
        for bit in range(7):
            other = chr(ord(character) ^ 1 << bit)
            if other not in "\n\0":
                found.append(damaged(text[:at] + other + text[at + 1 :], "checksum"))
    return found


def lines() -> list[dict[str, Any]]:
    """Single lines."""
    longest = '{"data":"' + "x" * (2048 - 1 - 5 - 11) + '"}'
    bodies = [
        "{}", '{"n":1,"op":"status"}', '{"a":[1,-2,0,true,false,null],"b":{"c":[]}}', '{"t":"\\"\\\\\\n\\t\\/ *abcd"}',
        '{"t":"\\u0041\\u00e9\\ud83d\\ude00"}', '{"n":999999999,"m":-999999999}', '{"a":"*0000"}', longest,
        '{"b":1,"a":2}',
    ]  # fmt: skip
    shapes = [
        "", " ", "1", '"a"', "[]", "null", '{"a":1,"a":1}', '{"a":{"b":1,"b":2}}', '{"a":1}}', '{"a":1}{}', '{"a":1,}',
        "{,}", '{"a" 1}', '{"a":1 "b":2}', '{"a":[1 2]}', "{'a':1}", "{a:1}", '{"a":tru}', '{"a":NaN}',
        '{"a":01}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":1e}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":"\\u12g4"}',
        '{"a":"\\ud800"}', '{"a":"\\udc00\\ud800"}', '{"a":"\\ud800x"}', '{"a":"\t"}', '{"a":"\x7f"}', '{"a":"é"}',
        '{"a":"', '{"a":Infinity}', '{"a":"b', '{"a"', '{"a":', "{", '{"a":' + "[" * 40 + "]" * 40 + "}",
        '{"a":-}', '{"a":"\x00"}', '{"a":--1}',
    ]  # fmt: skip
    status = line('{"n":1,"op":"status"}')
    wrong = [
        status[:-1], status[:-5], status[:-4], status + "0", status.upper(), status[1:], status.replace("*", ""), "*",
        "x", "*ffff ", "AT", "ATZ\r", "+++", status + "\r", "\r", line("{}")[:-4] + line("{}")[-4:].upper(),
        status + status, '{"n":1,"op":"status"}', '{"n":1,"op":"status"}*',
    ]  # fmt: skip
    return [
        *[good(body) for body in bodies],
        *[damaged(line(body), "shape") for body in shapes],
        *[damaged(text, "checksum") for text in wrong if text],
        *flipped(status),
        damaged(TOO_LONG, "overlong"),
        damaged("x" * 3000, "overlong"),
    ]


def streams() -> list[dict[str, Any]]:
    """Lines out of bytes that come as they like."""
    first, second = good('{"n":1,"op":"status"}'), good('{"n":2,"op":"disarm"}')
    one, two = first["line"] + "\n", second["line"] + "\n"
    overlong = damaged("", "overlong")
    return [
        {"name": "one byte at a time", "chunks": list(one + two), "lines": [first, second]},
        {"name": "all at once", "chunks": [one + two], "lines": [first, second]},
        {"name": "empty lines mean nothing", "chunks": ["\n\n", "\n" + one, "\n\n" + two + "\n"], "lines": [
            first, second]},
        {"name": "a newline ends what another left unfinished", "chunks": [one[:9], "\n" + two], "lines": [
            damaged(one[:9], "checksum"), second]},
        {"name": "a spoiler makes it a damaged line, also when it lacked nothing but its end", "chunks": [
            one[:-1], "~\n" + two], "lines": [damaged(one[:-1] + "~", "checksum"), second]},
        {"name": "a spoiler alone means nothing", "chunks": ["~\n", "~", "\n" + one, "\n~\n"], "lines": [first]},
        {"name": "two spoilers are a damaged line", "chunks": ["~~\n" + one], "lines": [
            damaged("~~", "checksum"), first]},
        {"name": "without a newline in between both are lost", "chunks": [one[:9] + two], "lines": [
            damaged(one[:9] + two[:-1], "checksum")]},
        {"name": "what is too long is skipped to its newline", "chunks": ["y" * 1500] * 2 + ["\n" + one], "lines": [
            overlong, first]},
        {"name": "too long by one", "chunks": [TOO_LONG, "\n", two], "lines": [overlong, second]},
        {"name": "the same line twice is two lines", "chunks": [one * 2], "lines": [first, first]},
        {"name": "nothing is a line before its newline", "chunks": [one[:-1]], "lines": []},
    ]  # fmt: skip


def actions() -> list[Action]:
    """Actions whose digests are vectors."""
    every = "".join(map(chr, range(0x20, 0x7F)))
    return [
        TypeText(text="a"), TypeText(text=every), TypeText(text='"\\\n\t/'), TypeText(text="x" * 1024),
        TypeText(text="\\" * 1024), TypeText(text="ls -l\n"), TypeText(text="\t"), KeyCombo(keys=["ctrl", "alt", "t"]),
        KeyCombo(keys=["f12"]), KeyCombo(keys=["page_up"]), MouseMove(x=-1000, y=5000), MouseMove(x=0, y=0),
        MouseClick(button="left"), MouseClick(button="middle"),
    ]  # fmt: skip


def digests() -> list[dict[str, Any]]:
    """Actions, their canonical forms, their digests."""
    found = []
    for action in actions():
        plain = {"payload": payload(action), "action_type": action_type(action)}
        canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        spelt = json.dumps(plain, separators=(",", ":"))
        found.append({"json": spelt, "canonical": canonical, "digest": digest(action)})
    escaped = '{"payload":{"text":"\\u0061\\/"},"action_type":"TYPE_TEXT"}'
    canonical = '{"action_type":"TYPE_TEXT","payload":{"text":"a/"}}'
    found.append({"json": escaped, "canonical": canonical, "digest": digest(TypeText(text="a/"))})
    return found


def files() -> dict[str, str]:
    """The files of firmware/vectors by name."""
    vectors = {"frames": {"lines": lines(), "streams": streams()}, "digests": digests(), "exchanges": exchanges()}
    return {f"{name}.json": json.dumps(content, indent=1) + "\n" for name, content in vectors.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)
