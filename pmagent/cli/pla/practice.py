"""``pmagent pla practice``: a device to try things with, and a terminal that shows what it types."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit
from pmagent.firmware.layouts import LAYOUTS


@command("pmagent pla practice", "pmagent pla practice --layout de", format=None)
@click.option("--layout", type=click.Choice(list(LAYOUTS)),
              help="The machine's keyboard layout [default: the setting pla.layout, else us].")
@click.option("--link", type=click.Path(path_type=Path), metavar="PATH",
              help="Where the device's port is to be [default: pmagent-practice in XDG_RUNTIME_DIR, or in ~/.cache].")
def practice(app: App, layout: str | None, link: Path | None) -> int:
    """A practice device: the firmware's own core behind a pseudo terminal. What it types appears here and nowhere else.

    Let it run, and start the daemon in another terminal with the shown line; then raise the mode, arm, propose and
    approve as with a board. Keys hit the kill switch, pull the plug and more; q ends it."""
    from pmagent.pla.practice import KEYS_SHOWN, practise

    if not sys.stdin.isatty():
        raise click.UsageError("practice needs a terminal, for its keys; programs use python -m pmagent.pla.device")
    chosen = layout or app.resolved.settings.pla.layout or "us"
    mine = app.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".cache"
    path = (link or Path(mine) / "pmagent-practice").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    out = app.output
    out.line(Styled("practice device", "bold"), f": types nowhere but here, as on a machine with the layout {chosen}")
    out.line("in another terminal:  ", Styled(f"PMAGENT_PLA_DEVICE={path} pmagent up", "bold"))
    out.line("then:                 pmagent pla mode SUGGEST; pmagent pla mode EXECUTE; pmagent pla arm;")
    out.line("                      pmagent pla propose 'type: hello'; pmagent pla approve")
    out.line(KEYS_SHOWN)
    out.flush()

    def write(text: str) -> None:
        out.raw(text.encode())
        out.flush()

    practise(path, chosen, sys.stdin.fileno(), write)
    return Exit.DONE
