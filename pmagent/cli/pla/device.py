"""``pmagent pla arm|disarm``: the device may type, or may not."""

from __future__ import annotations

import click

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, ask, ask_to_lower, because, operator_option, refusal


@click.command(cls=Command, example="pmagent pla arm")
@operator_option()
@format_option()
@pass_app
def arm(app: App, operator: str | None, format: str) -> int:
    """Arm the device: its light goes on, and it can type what is approved. The OA has to permit it; in EXECUTE only.

    It stays armed for as long as the daemon renews its lease of 5 s. Exit 1: it is not armed, with the reasons and the
    commands that mend them; mode and proposal stay as they are.
    """
    answer = ask(app, "pla.arm", channel="cli", operator=acting(app, operator))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        app.output.line(Styled("✓ armed", "red"), ": what is approved from now on is typed at once")
    else:
        refusal(app.output, "the device is not armed", document)
    return answer.exit_code


@click.command(cls=Command, example="pmagent pla disarm")
@click.option("--reason", default="", metavar="TEXT", help="Why; it stands in the log.")
@operator_option()
@format_option()
@pass_app
def disarm(app: App, reason: str, operator: str | None, format: str) -> int:
    """Disarm the device: what is being typed ends, every key is released, its light goes off. Anybody may."""
    answer = ask_to_lower(app, "pla.disarm", operator, "nothing is disarmed", reason=reason)
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["accepted"] and document["reasons"]:
        app.output.line(Styled("✓ disarmed", "green"), " on this side:")
        because(app.output, document)
    elif document["accepted"]:
        app.output.line(Styled("✓ disarmed", "green"), ", the device says so")
    else:
        refusal(app.output, "the device did not say that it is disarmed", document)
    return answer.exit_code
