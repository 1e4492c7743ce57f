"""``pmagent guest run``: start an agent behind the wall (docs/guests.md)."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Final, cast

import click

from pmagent.cli.frame import App, Command, command
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.contracts.guest_calls import Harness

_WORDS: Final = "pmagent.guest.words"


class GuestCommand(Command):
    """The words after ``--`` are the agent's program with its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take it out."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_WORDS] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@command(
    "pmagent guest run --login -- claude", "pmagent guest run --net docs.python.org -- codex exec 'run the tests'",
    cls=GuestCommand, operator=True, format=None,
)
@click.option("--as", "harness", type=click.Choice(["claude", "codex", "gemini", "opencode"]),
              help="Whose hooks the program has [default: by its name].")
@click.option("--ungated", is_flag=True, help="Start any other program: the wall stands, and nothing judges its calls.")
@click.option("--net", multiple=True, metavar="HOST", help="Let it reach this host too, besides its provider's.")
@click.option("--write", multiple=True, metavar="DIR", help="Let it write this folder too, besides the workspace.")
@click.option("--read", multiple=True, metavar="PATH", help="Let it read this too.")
@click.option("--login", is_flag=True, help="Give it this user's own folder of the harness, and the key's variable.")
@click.option("--env", multiple=True, metavar="NAME", help="Pass this variable; its value is masked in the log.")
@click.option("--commit", is_flag=True, help="Let it commit, in a copy of .git; its commits become a branch.")
@click.option("--observe", is_flag=True, help="Record calls without holding any up; the wall stands all the same.")
@click.option("--wait", type=click.IntRange(0, 600), default=20, show_default=True, metavar="SECONDS",
              help="So long a call is held while operators decide.")
def run(
    app: App, harness: str | None, ungated: bool, net: tuple[str, ...], write: tuple[str, ...],
    read: tuple[str, ...], login: bool, env: tuple[str, ...], commit: bool, observe: bool, wait: int,
    operator: str | None,
) -> int:
    """Start an agent in a sandbox: the workspace to write, its provider to reach, and nothing else.

    Every call of its tools passes the gate; hooks of ours stand in the administrator's settings, which neither the
    agent nor a project can switch off. With --ungated there are none: the program is walled, and its session counts as
    not gated. pmagent's log, policy and settings are not visible. On a terminal the agent is used as ever. Its exit
    code is passed on; 128 + n for signal n. 1: the sandbox could not be built. 5: no daemon answers. 7: what was asked
    for is never granted."""
    context = click.get_current_context()
    words = tuple(context.meta.get(_WORDS, ()))
    if not words:
        raise click.UsageError("name the agent's program after --, as in: pmagent guest run -- claude", context)
    from pmagent.guests.presets import PRESETS, UNGATED
    from pmagent.guests.wall import Walled, attend

    if ungated and (harness or login):
        raise click.UsageError("--ungated starts a program without hooks: take --as and --login away", context)
    known = [name for name in PRESETS if name != UNGATED]
    harness = harness or next((name for name in known if name in os.path.basename(words[0])), "")
    if ungated:
        harness = UNGATED
    if not harness:
        what = f"{words[0]} is no known harness: say --as {' or --as '.join(known)}, or --ungated"
        raise click.UsageError(what, context)
    from pmagent.guests.walls import begun, ended, not_started

    asked = Walled(
        harness=cast("Harness", harness), words=words, mode="observe" if observe or ungated else "enforce", wait=wait,
        write=write, read=read, hosts=net, login=login, env=env, commit=commit,
    )  # fmt: skip
    wall = str(uuid.uuid4())
    begun(app.layout, wall, asked, acting(app, operator))
    terminal = app.output.is_seen and os.isatty(0)
    try:
        end = attend(asked, app.layout, wall, app.environ, terminal=terminal)
    except PmagentError as error:
        not_started(app.layout, wall, asked.harness, error.message)
        raise
    ended(app.layout, wall, asked.harness, end)
    outcome = end.outcome
    if end.taken is not None:
        count, branch = end.taken.commits, end.taken.branch
        app.output.note(Styled("commits:", "green"), f" {count} as the branch {branch}; git reset {branch} takes them")
        for path in end.taken.obeyed:
            app.output.note(Styled("look at:", "yellow"), f" {path}, which programs obey unasked")
    if end.lost:
        app.output.note(Styled("commits:", "yellow"), f" not taken over: {end.lost}")
    for planted in outcome.planted:
        app.output.note(Styled("moved aside:", "yellow"), f" {planted}")
    if outcome.exceeded:
        app.output.note(Styled("ended:", "yellow"), f" {outcome.exceeded}")
    if outcome.signal is not None:
        return 128 + outcome.signal
    return outcome.exit_code if outcome.exit_code is not None else Exit.NO
