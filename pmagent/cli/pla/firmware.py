"""``pmagent pla firmware build|flash``: the board's files in a folder, or on its drive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.pla.firmware import Change, Line

_YES = "yes"


@command(
    "pmagent pla firmware build board", "pmagent pla firmware flash", "pmagent pla firmware flash --line uart",
    format=None,
)
@click.argument("action", type=click.Choice(["build", "flash"]))
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option("--line", type=click.Choice(["usb", "uart"]), default="usb", show_default=True,
              help="The line to pmagent: in the USB plug, or over a UART (firmware/README.md).")
@click.option("--boot-keyboard", is_flag=True, help="A keyboard for BIOS and boot loaders, too; UART only, no mouse.")
@click.option("--library", type=click.Path(path_type=Path, exists=True), metavar="PATH",
              help="adafruit_hid: its folder or wheel [default: the installed one].")
@click.option("--dry-run", is_flag=True, help="Show what would be written to the drive, and write nothing.")
@click.option("--yes", is_flag=True, help="Write to the drive without asking.")
def firmware(
    app: App, action: str, target: Path | None, line: Line, boot_keyboard: bool, library: Path | None, dry_run: bool,
    yes: bool,
) -> int:
    """build: write the board's files into the new folder TARGET. flash: write them onto the mounted CircuitPython drive
    TARGET [default: the only one], after showing what changes and asking; then they are read back.

    Only a drive whose boot_out.txt says CircuitPython 9 or 10 is written to. Exit 1: nothing was written, or it does
    not read back."""
    from pmagent.pla.firmware import build, files, version, wiring

    out = app.output
    if action == "build":
        if target is None:
            raise click.UsageError("build needs a folder: pmagent pla firmware build DIR")
        content = files(library, line=line, boot_keyboard=boot_keyboard)
        build(target, content)
        out.line(Styled("✓ made", "green"), f": {len(content)} files in {target}: {version()}")
        out.line("Copy all of it to the top of the drive CIRCUITPY, boot.py last.")
    elif not _flash(out, target, line, library, boot_keyboard=boot_keyboard, dry_run=dry_run, yes=yes):
        return Exit.NO if not dry_run else Exit.DONE
    out.line("")
    out.block(wiring())
    out.line("")
    out.line("Then unplug it and plug it in again: pmagent pla device shows it. One flash or more: firmware/README.md,")
    out.line("The light. Nothing arms without a kill switch: for a first try, a wire from GP14 to GND.")
    return Exit.DONE


def _flash(
    out: Output, target: Path | None, line: Line, library: Path | None, *, boot_keyboard: bool, dry_run: bool, yes: bool
) -> bool:  # fmt: skip
    """Whether it was written. Raises FirmwareProblem, OSError."""
    from pmagent.pla.firmware import FirmwareProblem, board_of, changes, drives, files, version, write

    if target is None:
        found = drives()
        if len(found) != 1:
            what = f"{len(found)} CircuitPython drives are mounted" if found else "no CircuitPython drive is mounted"
            raise FirmwareProblem(what, "name it: pmagent pla firmware flash /media/you/CIRCUITPY")
        target = found[0]
    board = board_of(target)
    content = files(library, line=line, boot_keyboard=boot_keyboard, major=board.major)
    planned = changes(target, content)
    out.line(f"{target}: {board.name}, CircuitPython {board.version}")
    for change in planned:
        _show(out, change)
    if dry_run:
        return False
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("without a terminal --yes says that this may be written")
        out.line("")
        out.line("At its next start it is a device, without drive and console, unless the repair button is held.")
        out.flush()
        if input("type yes and Enter to write it: ").strip() != _YES:
            out.line("nothing was written")
            return False
    write(target, content, planned)
    out.line(Styled("✓ written", "green"), f", and it reads back: {version()}")
    return True


def _show(out: Output, change: Change) -> None:
    style = {"new": "green", "replaced": "yellow", "removed": "red"}.get(change.kind, "dim")
    out.line("  ", Styled(f"{change.kind:<9}", style), f"{change.name}  {change.size} bytes")
