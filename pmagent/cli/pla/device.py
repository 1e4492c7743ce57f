"""``pmagent pla arm|disarm``: the device may type, or may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, command, same_request
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, ask, ask_to_lower, because, refusal

if TYPE_CHECKING:
    from pmagent.service.client import Unanswered


@command("pmagent pla arm", operator=True, request=True)
def arm(app: App, operator: str | None, request: str | None, format: str) -> int:
    """Arm the device: its light goes on, and it can type approved actions. The OA must permit it; in EXECUTE only.

    It stays armed as long as the daemon renews its lease of 2 s. Exit 1: it is not armed; the reasons and the next
    commands are shown; mode and proposal stay as they are."""
    answer = ask(app, "pla.arm", channel="cli", operator=acting(app, operator), **same_request(request))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        app.output.line(Styled("✓ armed", "red"), ": what is approved from now on is typed at once")
    else:
        refusal(app.output, "the device is not armed", document)
        stays = "".join(f"; {name} stays open" for name in document.get("open", ()))
        if document.get("mode"):  # an older daemon does not say
            app.output.line(f"  the mode stays {document['mode']}{stays}")
    return answer.exit_code


def _ended_from_beside(app: App, error: Unanswered) -> Unanswered:
    """End the line past a daemon that does not answer: what is to be said of both."""
    from pmagent.actors.pla.line.hangup import hang_up
    from pmagent.events.errors import PmagentError
    from pmagent.service.client import Unanswered
    from pmagent.service.operations import call_logged
    from pmagent.workspace.settings import workspace_of

    try:
        status = call_logged(workspace_of(app.workspace_flag, app.environ), "pla.status")
        linked = status["device"]
        port = hang_up(linked["port"], error.pid) if linked is not None else None
    except PmagentError as trouble:
        line, text = "held", f"its line could not be taken down from here: {trouble.message}"
    else:
        line = "down" if port is not None else "none"
        text = f"its line, {port}, was taken down" if port is not None else "the log knows of no device that is linked"
    unanswered = Unanswered(
        f"{text}; {error.message}", error.hint, outcome=error.outcome, request=error.request, pid=error.pid
    )
    unanswered.facts = {**unanswered.facts, "line": line}
    return unanswered


@command("pmagent pla disarm", operator=True, request=True)
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
def disarm(app: App, reason: str, operator: str | None, request: str | None, format: str) -> int:
    """Disarm the device: typing ends, every key is released, its light goes off. Anybody may do this.

    Where the daemon does not answer within 1.5 s, this command takes the device's line down itself (DTR falls; nothing
    is written), and shows the result. Exit 6 then: the daemon disarms as well, when it goes on."""
    from pmagent.service.client import Unanswered

    asked = {"reason": reason, **same_request(request)}
    try:
        answer = ask_to_lower(app, "pla.disarm", operator, "nothing is disarmed", **asked)
    except Unanswered as error:
        raise _ended_from_beside(app, error) from error
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
