"""``pmagent pla demo``: a session on a device to try things with, and what must not come to be."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@command("pmagent pla demo", format=None)
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR",
    help="Play in DIR, which must not exist yet, and leave it there.",
)
def demo(app: App, keep: Path | None) -> int:
    """Play a session in a workspace of its own: look, propose, approve, type; then stale and changed approvals, a lost
    answer, a reset in mid-typing, the kill switch, and a device of another contract.

    Daemon, commands, terminal and firmware core are real; only the controlled machine is simulated. Each step shows the
    expected and the actual result. Exit 1 at the first difference. Needs git; takes about half a minute."""
    from pmagent.pla.demo.environment import WORKSPACE
    from pmagent.pla.demo.scenes import play

    if shutil.which("git") is None:
        raise click.UsageError("there is no git on PATH, and a workspace is a git repository")

    def show(line: str) -> None:
        app.output.line(line)
        app.output.flush()  # it is watched

    with _put_away():
        if keep is None:
            with tempfile.TemporaryDirectory(prefix="pmagent-demo-") as folder:
                try:
                    play(Path(folder), show)
                finally:
                    _forget(Path(folder) / WORKSPACE)
        else:
            _new_folder(keep)
            play(keep.resolve(), show)
    app.output.line("")
    app.output.line(Styled("✓ everything was as expected", "green"), f"; it lies in {keep}" if keep else "")
    return Exit.DONE


def _forget(workspace: Path) -> None:
    """The registry need not remember a workspace that is removed."""
    from pmagent.workspace.trust import forget
    from pmagent.workspace.user_registry import Registry

    Registry().forget_log(workspace)
    forget(workspace)


def _new_folder(folder: Path) -> None:
    """Raises UsageError."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise click.UsageError(f"--keep {folder}: {why}; name a folder that does not exist yet") from error


@contextmanager
def _put_away() -> Iterator[None]:
    """While this lasts, a signal that would end this process at once is as Ctrl-C: daemon and device are ended, and the
    folder is removed."""
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
