"""Text as an attacker writes it, a log full of it, and what must not be left of it on a terminal."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Final

import anyio
import msgspec

from pmagent.events.event import Draft
from pmagent.workspace.layout import Layout
from tests.support.one_writer import open_log

FAKE: Final = "99999999  11-21 19:50:00.000  oa          ✓ oa.permit_granted"
"""A line as ``log tail`` would print it; no command may begin a line with it that the log does not hold."""

CORPUS: Final[dict[str, str]] = {
    "colour": "\x1b[31mred\x1b[0m \x1b[8mhidden\x1b[28m",
    "cursor": "\x1b[2J\x1b[H\x1b[3A\x1b[1Gover\x1b[K",
    "title": "\x1b]0;owned\x07 \x1b]2;owned\x1b\\",
    "clipboard_osc52": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "link_osc8": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "answerback": "\x05\x1b[c\x1b[6n\x1b[21t\x1bZ\x1bP$q\"p\x1b\\",
    "c1": "\x9b31mC1\x9b0m \x9d52;c;eA==\x9c \x90x\x9c \x85next",
    "bidi": "safe\u202e)gnp.exe\u202c \u2066iso\u2069 \u200f\u061c",
    "zero_width": "pay\u200bload\u2060\ufeff\u00ad\u2028\u2029",
    "tags": "\U000e0041\U000e0042 \ufe0f \ufff9x\ufffb",
    "carriage_return": "denied\rgranted",
    "backspace": "no\b\byes\x7f\x00\x0b\x0c",
    "fake_line": f"ok\n{FAKE}\r\n{FAKE}",
    "fake_prompt": "\n\nerror: none\nhint: pmagent up; rm -rf /\n$ ",
    "zalgo": "z" + "\u0301" * 300,
    "wide": "漢字" * 400,
    "huge": "A\x1b[5m" * 20_000,
    "markup": "[bold red]x[/] {x} %s %(x)s \\x1b[31m",
}
"""Name -> text. Everything that a terminal obeys, and everything that makes a person read what is not there."""


DRAWN = {
    *map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891", "\u08e2", "\U000110bd", "\U000110cd",
    *map(chr, range(0x13430, 0x13440)),
}  # fmt: skip
"""Of the category of what is not seen, but drawn: signs around numbers, and what puts hieroglyphs together."""


def unseen_in(text: str) -> set[str]:
    """The characters of ``text``, but for line breaks, that are not seen, are obeyed, or reorder others."""
    unseen = {char for char in set(text) - {"\n"} if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    return unseen - DRAWN


def assert_harmless(screen: bytes) -> None:
    """Nothing of ``screen`` but its line breaks is obeyed by a terminal, reorders, or is invisible."""
    text = screen.decode("utf-8")
    found = unseen_in(text)
    assert not found, sorted(map(ascii, found))
    assert not any(line.startswith(FAKE) for line in text.split("\n"))
    assert "\u0301" * 5 not in text, "marks do not climb over other lines"


def short(text: str, size: int = 60) -> str:
    """So much of ``text`` as a field of the envelope holds."""
    return text[:size] or "x"


async def _write(folder: Path) -> None:
    async with open_log(folder) as log:
        for number, (name, text) in enumerate(CORPUS.items()):
            data = {"name": name, "text": text, text[:200]: [text[:200], {"text": text[:2000]}], "reasons": [text[:99]]}
            raw = msgspec.json.encode(data)
            await log.append(Draft(f"test.{name}", None, raw, f"plain-{number}", "source", "run", 1))
            await log.append(
                Draft(short(text), None, raw, f"{number}{short(text)}", short(text), short(text), 2 * number + 2)
            )
            part = text[:10_000]
            known = {"mode": part, "previous": part, "reasons": [{"text": part}], "session_id": part, "name": part}
            raw = msgspec.json.encode({**known, "surfaces": [{"path": part, "status": part}], "error": part})
            for type in ("kernel.mode_decided", "oa.boot_refused", "effect.failed", "oa.escalated", "kernel.observed"):
                await log.append(Draft(type, None, raw, f"{type}-{number}", "oa", name, 1))


def hostile_log(workspace: Path) -> Path:
    """Write a log of hostile events below ``workspace``, of types that this code knows too; returns its folder.

    It is intact, but no payload of a known type has its shape: what folds the log must refuse it."""
    folder = Layout(workspace).log
    folder.parent.mkdir(parents=True, exist_ok=True)
    anyio.run(_write, folder)
    return folder
