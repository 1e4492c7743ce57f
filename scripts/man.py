"""Write the manual pages from the help: ``python -I scripts/man.py [DIR]`` (default: docs/man).

One page for pmagent, with its commands, and one for each group of commands. The same help gives the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pmagent.cli.app import program
from pmagent.cli.frame import CONTEXT, Command, Group, shared_options
from pmagent.cli.topics import TOPICS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "man"
SHARED = {option.name for option in shared_options()}


def pages() -> dict[str, str]:
    """The name of each page's file -> its content."""
    found = {"pmagent.1": _page(program, ["pmagent"], program.help or "", _program())}
    for name, entry in program.entries.items():
        command = program.get_command(_context(program, "pmagent"), name)
        if isinstance(command, Group) and not getattr(entry, "hidden", False):
            words = ["pmagent", name]
            found[f"pmagent-{name}.1"] = _page(command, words, command.help or "", _members(command, words))
    return found


def _page(group: Group, words: list[str], text: str, body: Iterator[str]) -> str:
    name = "-".join(words)
    about = text.split(":", maxsplit=1)[0].split(".", maxsplit=1)[0].strip()
    lines = [
        f'.TH {_text(name.upper())} 1 "" "pmagent" "User Commands"',
        ".SH NAME", f"{_text(name)} \\- {_text(about[:1].lower() + about[1:])}",
        ".SH SYNOPSIS", f".B {_text(' '.join(words))}", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]",
        ".SH DESCRIPTION", *_paragraphs(text),
        *_options([param for param in group.params if words == ["pmagent"] or param.name not in SHARED], group, words),
        ".SH COMMANDS", *body,
        ".SH SEE ALSO", _also(name),
    ]
    return "\n".join(lines) + "\n"


def _also(name: str) -> str:
    groups = [one for one, entry in program.entries.items() if isinstance(_command(program, one), Group)]
    names = [one for one in ["pmagent", *(f"pmagent-{one}" for one in groups)] if one != name]
    return ", ".join(f"\\fB{_text(one)}\\fR(1)" for one in sorted(names))


def _program() -> Iterator[str]:
    for name, entry in program.entries.items():
        command = _command(program, name)
        if isinstance(command, Group):
            yield from (".TP", f"\\fBpmagent {_text(name)}\\fR", f"See \\fBpmagent\\-{_text(name)}\\fR(1).")
        elif not getattr(entry, "hidden", False):
            yield from _member(command, ["pmagent", name])
    for topic in TOPICS.values():
        title, _, text = topic.text().partition("\n")
        yield from (f".SH {_text(title.upper())}", ".nf", *map(_text, text.strip("\n").splitlines()), ".fi")


def _members(group: Group, words: list[str]) -> Iterator[str]:
    for name in group.entries:
        yield from _member(_command(group, name), [*words, name])


def _member(command: click.Command, words: list[str]) -> Iterator[str]:
    if isinstance(command, Group):
        yield from _members(command, words)
        return
    usage = command.collect_usage_pieces(_context(command, " ".join(words)))
    yield from (f".SS {_text(' '.join(words))}", f"\\fB{_text(' '.join(words))}\\fR {_text(' '.join(usage))}")
    yield from (".PP", *_paragraphs(command.help or ""))
    yield from _options([param for param in command.params if param.name not in SHARED], command, words, inner=True)
    if isinstance(command, Command):
        yield from (".PP", "Example:", ".PP", ".nf", *(f"    $ {_text(one)}" for one in command.examples), ".fi")


def _options(
    params: list[click.Parameter], command: click.Command, words: list[str], *, inner: bool = False
) -> Iterator[str]:
    context = _context(command, " ".join(words))
    records = [record for param in params if (record := param.get_help_record(context)) is not None]
    if records and not inner:
        yield ".SH OPTIONS"
    for name, text in records:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(" ".join(text.split())))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        yield from ((".PP",) if number else ())
        yield from (_text(line.strip()) for line in paragraph.splitlines() if line.strip())


def _command(group: Group, name: str) -> click.Command:
    command = group.get_command(_context(group, "pmagent"), name)
    assert command is not None, name
    return command


def _context(command: click.Command, name: str) -> click.Context:
    return click.Context(command, info_name=name, **{**CONTEXT, "terminal_width": 100})


def _text(text: str) -> str:
    """A line that troff shows as it is."""
    plain = text.replace("\\", "\\e")
    for letter, escape in (("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        plain = plain.replace(letter, escape)
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in plain)
    return f"\\&{plain}" if plain.startswith((".", "\\(aq")) else plain


def main() -> None:
    """Write the pages into the folder of the command line; pages of no command go."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.1"):
        if old.name not in made:
            old.unlink()
    for name, content in made.items():
        (folder / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main()
