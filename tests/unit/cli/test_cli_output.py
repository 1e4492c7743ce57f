"""The one writer: clean for people, byte-faithful for programs, colour only where it is wanted."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.cli.output import Output, PipeClosed, Styled, write_file
from pmagent.events.errors import CorruptLog
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, clean_environment


class Terminal(io.BytesIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.BytesIO):
    """A stream whose reader has gone."""

    def write(self, _data: object, /) -> int:
        raise BrokenPipeError


def written(environ: dict[str, str], stream: io.BytesIO | None = None) -> str:
    out = stream or io.BytesIO()
    Output(out, io.BytesIO(), environ).line(Styled("word", "red"))
    return out.getvalue().decode()


@each("environ, stream, colored", [
    ({}, io.BytesIO, False),
    ({}, Terminal, True),
    ({"NO_COLOR": "1"}, Terminal, False),
    ({"NO_COLOR": ""}, Terminal, True),
    ({"TERM": "dumb"}, Terminal, False),
    ({"CLICOLOR_FORCE": "1"}, io.BytesIO, True),
    ({"CLICOLOR_FORCE": "0"}, io.BytesIO, False),
    ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, Terminal, False),
])
def test_color_is_for_terminals_unless_the_environment_says_otherwise(
    environ: dict[str, str], stream: type[io.BytesIO], colored: bool
) -> None:
    assert (written(environ, stream()) != "word\n") is colored


def test_a_style_cannot_be_smuggled_in_by_the_text() -> None:
    out = io.BytesIO()
    Output(out, io.BytesIO(), {"CLICOLOR_FORCE": "1"}).line(Styled("a\x1b[0m\x1b[5mb", "red"), "\x1b]52;c;eA==\x07")
    assert out.getvalue().decode().count("\x1b") == 2


def test_a_line_is_one_line() -> None:
    out = io.BytesIO()
    Output(out, io.BytesIO(), {}).line("a\nb\r\x85\u2028c")
    assert out.getvalue().count(b"\n") == 1


def test_json_is_byte_faithful() -> None:
    out = io.BytesIO()
    Output(out, io.BytesIO(), {}).document({"text": "\u202e\x9b"})
    assert out.getvalue().decode() == '{\n  "text": "\u202e\x9b"\n}\n'


def test_a_terminal_of_another_encoding_gets_what_it_can_show() -> None:
    out = io.BytesIO()
    Output(out, io.BytesIO(), {}, ("ascii", "ascii")).line("✓ done")
    assert out.getvalue() == b"? done\n"


def test_a_reader_that_went_away_is_one_clear_exception() -> None:
    with pytest.raises(PipeClosed):
        Output(Broken(), io.BytesIO(), {}).line("x")


def test_notes_have_nowhere_else_to_fail_to() -> None:
    output = Output(io.BytesIO(), Broken(), {})
    output.note("lost")
    output.note("and again")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_a_stream_that_was_closed_before_the_start_hinders_no_command(workspace: Path, closed: str) -> None:
    for command, code in (("oa decision 'Add a page'", 0), ("oa frobnicate", 2)):
        line = f"exec {shlex.join(PMAGENT)} {command} {closed}"
        environ = clean_environment(PMAGENT_WORKSPACE=str(workspace), PYTHONDEVMODE="1")
        done = subprocess.run(["sh", "-c", line], env=environ, capture_output=True, check=False, timeout=SECONDS)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        assert b"Warning" not in done.stderr


def test_width_is_told_by_the_environment_else_it_is_wide_for_a_pipe() -> None:
    assert Output(io.BytesIO(), io.BytesIO(), {"COLUMNS": "100"}).columns == 100
    assert Output(io.BytesIO(), io.BytesIO(), {"COLUMNS": "1"}).columns == 40
    assert Output(io.BytesIO(), io.BytesIO(), {}).columns == 160


def test_a_file_keeps_what_came_before_an_error(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"good"
        raise CorruptLog("f", 1, 2, "bad")

    with pytest.raises(CorruptLog):
        write_file(tmp_path / "out", chunks())
    assert (tmp_path / "out").read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@each("environ, wanted, paged", [
    ({"PAGER": "sed s/^/paged:/", "TERM": "xterm"}, True, True),
    ({"PAGER": "sed s/^/paged:/", "TERM": "xterm"}, False, False),
    ({"PAGER": "sed s/^/paged:/", "TERM": "dumb"}, True, False),
    ({"PAGER": "sed s/^/paged:/"}, True, False),
    ({"PAGER": "cat", "TERM": "xterm"}, True, False),
    ({"PAGER": "", "TERM": "xterm"}, True, False),
    ({"PAGER": "'", "TERM": "xterm"}, True, False),
    ({"PAGER": "no-such-pager", "TERM": "xterm"}, True, False),
])
def test_long_text_goes_to_the_pager_of_a_terminal(
    capfd: pytest.CaptureFixture[str], environ: dict[str, str], wanted: bool, paged: bool
) -> None:
    direct = Terminal()
    output = Output(direct, io.BytesIO(), {"NO_COLOR": "1", "PATH": os.environ["PATH"], **environ})
    with output.paged(wanted=wanted):
        output.line("a\x1b[31mb")
    output.line("behind")
    shown = direct.getvalue().decode()
    assert capfd.readouterr().out == ("paged:a\u241b[31mb\n" if paged else "")
    assert shown.splitlines() == (["behind"] if paged else ["a\u241b[31mb", "behind"])


def test_a_pipe_has_no_pager() -> None:
    piped = io.BytesIO()
    output = Output(piped, io.BytesIO(), {"PAGER": "false", "TERM": "xterm"})
    with output.paged():
        output.line("word")
    assert piped.getvalue() == b"word\n"


def test_a_reader_who_leaves_the_pager_ends_what_is_shown() -> None:
    output = Output(Terminal(), io.BytesIO(), {"PAGER": "true", "TERM": "xterm", "PATH": os.environ["PATH"]})
    shown = 0
    with output.paged():
        for shown in range(1_000_000):  # noqa: B007 - how far it came
            output.line("a line that nobody reads")
    assert shown < 999_999
    output.line("behind")
