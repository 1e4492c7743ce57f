"""The daemon's messages never keep it waiting: what nobody reads is left out, and that is said."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from pmagent.cli.messages import log_through
from pmagent.cli.output import NOTE_BYTES_MAX, Output
from tests.support.cases import each
from tests.support.commands import _Stream


@contextmanager
def logged_to(descriptor: int) -> Iterator[structlog.stdlib.BoundLogger]:
    """A logger that writes to this descriptor; then logging is as it was."""
    with os.fdopen(descriptor, "wb", buffering=0) as stream:
        log_through(Output(_Stream(), stream, {}))
        try:
            yield structlog.get_logger("pmagent")
        finally:
            structlog.reset_defaults()


def test_a_pipe_that_nobody_reads_keeps_nobody_waiting() -> None:
    reader, writer = os.pipe()
    with logged_to(writer) as log:
        for number in range(2000):
            log.warning("the mode changed", number=number)
        first = os.read(reader, 1 << 20).decode()
        shown = first.count("\n")
        assert 100 < shown < 2000
        assert first.endswith(f"number={shown - 1}\n"), "nothing is cut in the middle"
        log.error("a contract was violated")
        lost, news = os.read(reader, 1 << 20).decode().splitlines()
        assert f"{2000 - shown} messages before this were not shown" in lost
        assert "a contract was violated" in news
        os.close(reader)


def test_a_terminal_that_was_stopped_keeps_nobody_waiting() -> None:
    master, end = pty.openpty()
    with logged_to(end) as log:
        log.info("before")
        termios.tcflow(end, termios.TCOOFF)
        for _ in range(3):
            log.info("meanwhile")
        termios.tcflow(end, termios.TCOON)
        log.info("after")
        seen = b""
        while b"after" not in seen:
            seen += os.read(master, 4096)
        assert b"meanwhile" not in seen
        assert b"3 messages before this were not shown" in seen
        os.close(master)


def test_a_reader_that_went_away_is_no_error() -> None:
    reader, writer = os.pipe()
    with logged_to(writer) as log:
        os.close(reader)
        for _ in range(3):
            log.info("x")


@each("character", ["x", "\u00e9", "\U0001f600"])
@each("color", ["always", "never"])
def test_a_long_message_is_cut_to_what_a_pipe_takes_at_once(character: str, color: str) -> None:
    reader, writer = os.pipe()
    stream = os.fdopen(writer, "wb", buffering=0)
    output = Output(_Stream(), stream, {})
    output.set_color(color)
    assert output.try_note("a" * 3 + character * 10_000)
    line = os.read(reader, 1 << 20)
    assert len(line) <= NOTE_BYTES_MAX
    assert line.decode().rstrip("\n").removesuffix("\x1b[0m").endswith("\u2026")
    os.close(reader)
    stream.close()
