"""A terminal for tests: what a person would see of what a program wrote to it; and a pty to give to the program."""

from __future__ import annotations

import codecs
import fcntl
import pty
import re
import struct
import termios

from pmagent.clean import width

_CUT = re.compile(r"\x1b(?:\[\d*)?")
"""The beginning of a sequence whose end has not come yet."""
_PART = re.compile(r"\x1b\[(\d*)([AJKm])|(\r)|(\n)|([^\x00-\x1f\x7f-\x9f]+)")


class Terminal:
    """Lines of ``columns``; the last ``rows`` of them can be written over. An unknown sequence is an error: a
    program that we start says nothing that moves the cursor otherwise."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.lines: list[str] = [""]
        self.goes_on: list[bool] = [False]
        """Of each line, whether it was broken off the one before it for want of room."""
        self.row = self.column = 0
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._rest = ""
        self.highest = 0
        """How far up the cursor was moved at once, at most."""

    def feed(self, written: bytes) -> None:
        """Take what was written."""
        text, at, self._rest = self._rest + self._decode(written), 0, ""
        while at < len(text):
            found = _PART.match(text, at)
            if found is None and _CUT.fullmatch(text, at):
                self._rest = text[at:]
                return
            assert found is not None, f"not known here: {text[at : at + 20]!r}"
            at = found.end()
            number, what, back, newline, shown = found.groups()
            if shown:
                for char in shown:
                    self._put(char)
            elif back:
                self.column = 0
            elif newline:
                self._next()
            elif what == "A":
                up = int(number or 1)
                self.highest = max(self.highest, up)
                self.row = max(self.row - up, len(self.lines) - self.rows, 0)
            elif what == "K":
                self.lines[self.row] = self.lines[self.row][: self.column]
            elif what == "J":
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :], self.goes_on[self.row + 1 :]

    @property
    def text(self) -> str:
        """Everything, what has scrolled away too."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip()

    def resize(self, columns: int, rows: int) -> None:
        """Have another size, as terminals do that join what was broken, and break what is too long."""
        whole: list[str] = []
        cursor = 0
        for number, (line, goes_on) in enumerate(zip(self.lines, self.goes_on, strict=True)):
            whole = [*whole[:-1], whole[-1] + line] if goes_on else [*whole, line]
            if number == self.row:
                cursor = len(whole) - 1
        self.lines, self.goes_on = [], []
        for number, line in enumerate(whole):
            if number == cursor:
                self.row = len(self.lines)
            broken = [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
            self.lines += broken
            self.goes_on += [False] + [True] * (len(broken) - 1)
        self.columns, self.rows = columns, rows

    def _put(self, char: str) -> None:
        if width(self.lines[self.row][: self.column]) + width(char) > self.columns:
            self._next()
            self.column = 0
            self.goes_on[self.row] = True
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
        self.column += 1

    def _next(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")
            self.goes_on.append(False)


def open_pty(columns: int, rows: int) -> tuple[int, int]:
    """A new pseudo terminal of this size: the program's end last."""
    master, slave = pty.openpty()
    resize(master, columns, rows)
    return master, slave


def resize(terminal: int, columns: int, rows: int) -> None:
    """Give the terminal another size."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
