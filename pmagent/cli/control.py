"""``pmagent pause`` and ``pmagent resume``: the stop switch."""

from __future__ import annotations

import click

from pmagent.cli.frame import App, command, same_request
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, ask, ask_to_lower


@command("pmagent pause", "pmagent pause --reason 'the bench is being rewired'", request=True, operator=True)
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
def pause(app: App, reason: str, operator: str | None, request: str | None, format: str) -> int:
    """Let no new outward effect start, and disarm the keyboard device, until `pmagent resume`, also across restarts.

    Effects permitted meanwhile are held. Running effects go on (`pmagent cancel` ends them), except typing, which ends.
    The pause holds for everyone in this workspace. A run or audit of another shell without a daemon takes no requests:
    Ctrl-C there ends it. Exit 6: the daemon does not answer; it pauses when it goes on."""
    answer = ask_to_lower(app, "control.pause", operator, "nothing is paused", reason=reason, **same_request(request))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["since"] == document["request"]:
        app.output.line(Styled("✓ paused", "green"), f": nothing new starts, since position {document['since']}")
    else:
        app.output.line(Styled("✓ paused", "green"), f" already, since position {document['since']}")
    return answer.exit_code


@command("pmagent resume", request=True, operator=True)
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
def resume(app: App, reason: str, operator: str | None, request: str | None, format: str) -> int:
    """Let outward effects start again: the held ones first, except those whose permit has expired."""
    who = acting(app, operator)
    answer = ask(app, "control.resume", channel="cli", operator=who, reason=reason, **same_request(request))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["since"]:
        held = document["held"]
        app.output.line(Styled("✓ resumed", "green"), f": {held} held effect{'s' if held != 1 else ''} may start")
    else:
        app.output.line("- effects were not paused")
    return answer.exit_code
