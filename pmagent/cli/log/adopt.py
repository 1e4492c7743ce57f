"""``pmagent log adopt``: a log that came from elsewhere is taken for this user's own, and what is open in it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import confirmed
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.service.adoption import Found

LINES_MAX: Final = 12


@command("pmagent log adopt", "pmagent log adopt --yes", operator=True)
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
def adopt(app: App, yes: bool, operator: str | None, format: str) -> int:
    """Make this workspace's log your own after it was moved, copied or restored, or came with a clone or an archive.

    Everything open in it is shown, and then ended, never resumed: runs and audits are cancelled, permits revoked, the
    PLA's session and every open effect ended. Nothing starts meanwhile. The log records the adoption. Exit 1: it is
    trusted already, or you said no."""
    return _adopted(app, yes, operator, format, lost=False)


@command("pmagent log accept-restore", "pmagent log accept-restore --yes", operator=True)
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
def accept_restore(app: App, yes: bool, operator: str | None, format: str) -> int:
    """Go on with a log that lost events that were acknowledged here: its database was restored from a backup, or failed
    over to a server that lacked them.

    The events that are gone are named. Everything open is ended, never resumed: it may have been done in what is gone.
    The log records that. Exit 1: nothing is gone, or you said no."""
    return _adopted(app, yes, operator, format, lost=True)


def _adopted(app: App, yes: bool, operator: str | None, format: str, *, lost: bool) -> int:
    from pmagent.pla.operators import checked, login
    from pmagent.service.adoption import adopt as adopting
    from pmagent.service.adoption import look

    workspace = app.workspace.resolve()
    who = checked(operator, "--operator") if operator is not None else login()  # the settings may not be this user's
    found = look(workspace)
    if not found.why:
        app.output.note("nothing to do: the log is trusted")
        return Exit.NO
    if lost and not (found.gone_to or found.older):
        app.output.note(f"nothing is gone, and the log is not trusted: {found.why}")
        app.output.note("pmagent log adopt takes it for your own")
        return Exit.NO
    _screen(app.output, found)
    if not yes and not confirmed(app.output, "end what is open, and take the log for your own?", "--yes"):
        app.output.note("it is not adopted, and can only be read")
        return Exit.NO
    adopting(workspace, found, who)
    text = Styled("✓ adopted", "green"), f": log {found.log_id}"
    app.output.answer(format, {"adopted": True, **msgspec.to_builtins(found)}, lambda: app.output.line(*text))
    return Exit.DONE


def _screen(output: Output, found: Found) -> None:
    output.note(f"log        {found.log_id}, position {found.position}")
    output.note(f"           {found.why}")
    if found.previous:
        output.note(f"known in   {found.previous}")
    if found.gone_to:
        what = f"       events {found.gone_from} to {found.gone_to}; their sum was {found.known_sum}"
        output.note(Styled("gone", "red"), what)
    for line in found.open[:LINES_MAX]:
        output.note(f"open       {line}")
    if len(found.open) > LINES_MAX:
        output.note(f"           … and {len(found.open) - LINES_MAX} more")
    if not found.open:
        output.note("open       nothing")
