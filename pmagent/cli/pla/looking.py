"""``pmagent pla status|list|show``: how things stand; reading only."""

from __future__ import annotations

from typing import Any

import click

from pmagent.cli.daemon import daemon_pieces
from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import acting, ask, mode_piece, switch_piece
from pmagent.cli.pla.proposal_screen import list_proposals, show_proposal
from pmagent.contracts.pla_words import OUTCOMES
from pmagent.exitcodes import Exit
from pmagent.pla.filters import STANDS, fits


@command("pmagent pla status", "pmagent pla status --format json")
def status(app: App, format: str) -> int:
    """Mode, session, device, and the open proposal; without a daemon, from the log."""
    document = ask(app, "pla.status").document
    document["violations"] = _violations(app, document["session"])
    app.output.answer(format, document, lambda: _status_screen(app.output, document))
    return Exit.DONE


def _violations(app: App, session: dict[str, Any] | None) -> dict[str, Any] | None:
    """How many contract violations the session's log of them has, how many of those answered an operator, and where
    that is; None where there were none."""
    from pmagent.projections.sessions.entries import answered
    from pmagent.projections.sessions.paths import violations_path

    if session is None:
        return None
    path = violations_path(session["session_id"])
    try:
        content = (app.workspace / path).read_bytes()
        return {"count": content.count(b"\n"), "answered": len(answered(content)), "path": path}
    except FileNotFoundError:
        return None
    except OSError as error:
        app.output.note(f"{path} cannot be read ({error.strerror}), so violations are not counted")
        return None


def _status_screen(output: Output, document: dict[str, Any]) -> None:
    output.line("mode       ", mode_piece(document["mode"]), f", for {document['action_class']}")
    if not document["running"]:
        output.line("daemon     ", *daemon_pieces(document["daemon"], None))
    session = document["session"]
    if session is None:
        output.line("session    none: it begins with pmagent pla mode SUGGEST")
    else:
        began = f"since {output.moment(session['began_at'])}, by {session['operator_id']}"
        output.line(f"session    {session['session_id']}, {began}")
    if document["violations"] is not None:
        answered, path = document["violations"]["answered"], document["violations"]["path"]
        if count := document["violations"]["count"] - answered:
            text = f"✗ {count} contract violation{'' if count == 1 else 's'}"
            output.line("           ", Styled(text, "red"), f": {path}")
        if answered:
            output.line(f"           {answered} refused request{'' if answered == 1 else 's'}: {path}")
    if document["ending"]:
        output.line(f"           it ends as soon as the last execution is known to: {document['ending']}")
    _device_lines(output, document)
    for name in document["halted"]:
        output.line(Styled("✗ halted", "red"), f"   {name}; pmagent log tail --type actor.halted")
    if document["proposal"] is not None:
        show_proposal(output, document["proposal"])


def _device_lines(output: Output, document: dict[str, Any]) -> None:
    device = document["device"]
    if device is None:
        trouble = f": {document['trouble']}" if document["trouble"] else ""
        output.line(f"device     none is linked{trouble}; pmagent pla device shows what there is")
        return
    output.line(f"device     {device['device_id']} on {device['port']}, firmware {device['firmware_version']}")
    if not device["compatible"]:
        output.line("           ", Styled("of another contract", "red"), f": {device['text']}")
    armed = Styled("armed", "red") if document["armed"] else Styled("not armed", "green")
    unheard = document["armed"] and document.get("daemon") == "unresponsive"
    lease = ", when last heard: it disarms itself 2 s later; its switch ends typing at once" if unheard else ""
    output.line("           ", armed, lease)
    output.line("           kill switch: ", switch_piece(device["kill_switch_state"]))
    if document.get("typing"):
        how_far = "{done} of {of} reports sent".format(**document["typing"])
        output.line("           ", Styled("▸ typing", "yellow"), f": {how_far}")
    if device["caps_lock"]:
        output.line("           ", Styled("Caps Lock is on", "red"), ", and with it no letter is typed")
    if device["error"]:
        output.line("           its last error: ", Styled(device["error"], "red"))


@command("pmagent pla list", "pmagent pla list --stands open --format json", name="list")
@click.option("-n", "--lines", "count", type=click.IntRange(1, 100), default=20, show_default=True, metavar="N",
              help="Of the last N.")
@click.option("--stands", type=click.Choice(STANDS), help="Only those in this state.")
@click.option("--by", help="Only those that this operator requested or decided.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only those with this outcome.")
def listing(app: App, count: int, stands: str | None, by: str | None, outcome: str | None, format: str) -> int:
    """The newest proposals and their outcomes. Older ones are in the session logs."""
    found = ask(app, "pla.list", count=count).document
    every = found["proposals"]
    document = {**found, "proposals": [one for one in every if fits(one, stands or "", by or "", outcome or "")]}
    narrowed = bool(stands or by or outcome)
    app.output.answer(
        format, document, lambda: list_proposals(app.output, document["proposals"], narrowed=narrowed)
    )
    return Exit.DONE


@command("pmagent pla show", "pmagent pla show prop-5b0c --hexdump", "pmagent pla show prop-5b0c --document")
@click.argument("proposal_id", required=False, default="")
@click.option("--reveal", is_flag=True, help="Masked text, too, from the daemon's memory; the log records the viewing.")
@click.option("--hexdump", is_flag=True, help="The text's bytes as well.")
@click.option("--document", is_flag=True, help="Print the contract's action_proposal (JSON), and nothing else.")
def show(app: App, proposal_id: str, reveal: bool, hexdump: bool, document: bool, format: str) -> int:
    """One proposal: exactly what would be typed, its digest, its risk, who asks, why, and until when it is open.

    PROPOSAL_ID may be the beginning of an id; the default is the open proposal. ⏎ is Enter, → is Tab."""
    if document and (reveal or hexdump):
        raise click.UsageError("--document prints the proposal as its contract has it: masked, and without a hexdump")
    who = {"operator": acting(app, None), "channel": "cli"} if reveal else {}
    shown = ask(app, "pla.show", proposal_id=proposal_id, reveal=reveal, **who).document
    if document:
        app.output.document(shown["action_proposal"])
    elif format == "json":
        app.output.document(shown)
    else:
        show_proposal(app.output, shown, hexdump=hexdump)
        if "plain" in shown and shown["plain"] is None:
            app.output.note("the text is not held: only the daemon that was asked for it does, until it is decided")
    return Exit.DONE
