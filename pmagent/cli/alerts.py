"""``pmagent alerts``: what somebody has to look at; ``handover``: notes for who comes next; ``notify``: messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.clean import shorten
from pmagent.cli.frame import App, command, same_request
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import acting, because
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.service.answer import Answer

_STYLES: Final = {
    "urgent": Styled("! urgent", "red"), "bad": Styled("✗ bad", "red"), "warn": Styled("! warn", "yellow"),
    "request": Styled("◦ request", "cyan"),
}  # fmt: skip


@command(
    "pmagent alerts", "pmagent alerts --ack 4711 --note 'looked at the screen: nothing was typed'",
    "pmagent alerts --acknowledged", operator=True, request=True,
)
@click.option("--ack", "ids", type=click.IntRange(1), multiple=True, metavar="ID",
              help="Acknowledge this alert; may be given several times. Needs --note.")
@click.option("--note", default="", metavar="TEXT", help="How it was dealt with, for the log.")
@click.option("--acknowledged", "done", is_flag=True, help="Show acknowledged alerts, newest first.")
@click.option("--before", type=click.IntRange(1), metavar="POSITION", help="With --acknowledged: go on from there.")
def alerts(
    app: App, ids: tuple[int, ...], note: str, done: bool, before: int | None, operator: str | None,
    request: str | None, format: str,
) -> int:
    """Open alerts, the gravest first; each stays open until somebody acknowledges it, by name and with a note.

    An alert's ID is the position of its newest event. A request for a decision is over with the decision. Exit 1: an
    alert was not acknowledged."""
    if ids and (done or before):
        raise click.UsageError("--ack acknowledges, --acknowledged shows; leave one out")
    if note and not ids:
        raise click.UsageError("--note goes with --ack ID")
    if request is not None and len(ids) != 1:
        raise click.UsageError("--request repeats one acknowledgement: give one --ack")
    if ids:
        return _acknowledge(app, ids, note, operator, request, as_json=format == "json")
    answer = _ask(app, "alerts.list")
    document = answer.document
    if done or before:
        document = _acknowledged(app, before or document["newest"])
    app.output.answer(format, document, lambda: _acknowledged_screen(app.output, document) if done or before
                      else _screen(app.output, document))  # fmt: skip
    return answer.exit_code


def _acknowledge(
    app: App, ids: tuple[int, ...], note: str, operator: str | None, request: str | None, *, as_json: bool
) -> int:
    if not note.strip():
        raise click.UsageError("an acknowledgement needs a note: --note TEXT")
    who, documents, code = acting(app, operator), [], int(Exit.DONE)
    for one in dict.fromkeys(ids):
        answer = _ask(
            app, "alerts.acknowledge", alert=one, note=note, operator=who, channel="cli", **same_request(request)
        )
        documents.append({"id": one, **answer.document})
        code = max(code, answer.exit_code)
        if as_json:
            continue
        if answer.document["acknowledged"]:
            app.output.line(Styled("✓ acknowledged", "green"), f": {one}, {answer.document['title']}")
        else:
            app.output.line(Styled("✗ refused", "red"), f": {one} stays as it is")
            because(app.output, answer.document)
    if as_json:
        app.output.document({"acknowledged": documents})
    return code


def _ask(app: App, operation: str, **arguments: Any) -> Answer:
    from pmagent.cli.pla.common import ask

    return ask(app, operation, **arguments)


def _acknowledged(app: App, position: int) -> dict[str, Any]:
    from pmagent.alerts.inbox import acknowledged

    found, before = acknowledged(app.layout, position)
    return {"acknowledged": found, "before": before or None}


def _screen(output: Output, document: dict[str, Any]) -> None:
    for one in document["open"]:
        times = f", {one['count']} times since {output.moment(one['since'])}" if one["count"] > 1 else ""
        text = f"  {one['position']}  {output.moment(one['time'])}  {one['title']}{times}"
        output.line(_STYLES[one["severity"]], text)
        if one["detail"]:
            output.line("    ", Styled(shorten(one["detail"], output.columns - 4), "dim"))
    if not document["open"]:
        output.line("no alert is open")
    if document["given_up"]:
        output.note(f"{document['given_up']} more had no room here; they stand in the log")
    if document["acknowledged"]:
        output.note(f"{document['acknowledged']} acknowledged: pmagent alerts --acknowledged")


def _acknowledged_screen(output: Output, document: dict[str, Any]) -> None:
    for one in document["acknowledged"]:
        output.line(f"{one['alert']}  {one['title']}")
        note = shorten(one["note"], output.columns - 30)
        output.line(f"    {one['operator_id']}, {output.moment(one['time'])}: {note}")
    if not document["acknowledged"]:
        output.line("no alert has been acknowledged")
    if document["before"]:
        output.note(f"older ones: pmagent alerts --acknowledged --before {document['before']}")


@command(
    "pmagent handover", "pmagent handover 'two approvals wait; rack-3 is being repaired, do not arm it'",
    operator=True, request=True,
)
@click.argument("text", required=False)
def handover(app: App, text: str | None, operator: str | None, request: str | None, format: str) -> int:
    """Leave the note TEXT for the next operator: what waits, what to watch; without TEXT, show the notes left.

    A note heads the console until an operator acknowledges it: pmagent alerts --ack NUMBER --note TEXT."""
    if text is None and (operator or request):
        raise click.UsageError("--operator and --request go with a TEXT")
    if text is None:
        return _handed_over(app, format)
    answer = _ask(app, "alerts.handover", text=text, operator=acting(app, operator), channel="cli",
                  **same_request(request))  # fmt: skip
    said = f"handed over at position {answer.document['position']}"
    app.output.answer(format, answer.document, lambda: app.output.line(said))
    return answer.exit_code


def _handed_over(app: App, format: str) -> int:
    from pmagent.actors.alerts.core import HANDOVER
    from pmagent.alerts.inbox import handed_over

    opened = _ask(app, "alerts.list").document["open"]
    notes = handed_over(app.layout, [one["position"] for one in opened if one["kind"] == HANDOVER])

    def screen() -> None:
        for one in notes:
            app.output.line(f"{one['position']}  {one['operator_id']}, {app.output.moment(one['time'])}")
            app.output.block(one["text"])
        if notes:
            app.output.note(Styled("hint:", "cyan"), " pmagent alerts --ack NUMBER --note TEXT acknowledges one")
        else:
            app.output.line("no hand-over note is open")

    app.output.answer(format, {"notes": notes}, screen)
    return Exit.DONE


@command("pmagent notify test", "pmagent notify test --channel email", name="test")
@click.option("--channel", type=click.Choice(["webhook", "ntfy", "slack", "email"]),
              help="Only this channel [default: each that is configured].")
def notify_test(app: App, channel: str | None, format: str) -> int:
    """Send a trial message over each configured channel, with the daemon's environment where one runs.

    [notifications] in .pmagent/config.toml configures the channels. Exit 1: a channel failed, or none is configured."""
    answer = _ask(app, "notify.test", channel=channel or "")
    document = answer.document
    if format == "json":
        app.output.document(document)
        return answer.exit_code
    for name, one in document["channels"].items():
        if one["ok"]:
            app.output.line(Styled("✓ sent", "green"), f"  {name}")
        else:
            app.output.line(Styled("✗ failed", "red"), f"  {name}: {one['error']}")
    if not document["channels"]:
        app.output.line("no channel is configured")
        app.output.note(Styled("hint:", "cyan"), " [notifications] in .pmagent/config.toml; pmagent help environment")
    return answer.exit_code
