"""``pmagent pla mode|end|observe``: the session, its mode, and what stands on the screen."""

from __future__ import annotations

from typing import Any

import click

from pmagent.clean import shorten
from pmagent.cli.frame import App, command, same_request
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import acting, ask, ask_to_lower, because, mode_piece, refusal, withdrawn

MODES = ("OBSERVE", "SUGGEST", "EXECUTE")
CLASSES = ("feature_work", "ops_blocks", "migrations", "phase_transitions", "remediation", "diagnostic")


@command("pmagent pla mode SUGGEST", "pmagent pla mode OBSERVE --reason 'lunch'", operator=True, request=True)
@click.argument("mode", type=click.Choice(MODES))
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
@click.option("--action", "action_class", type=click.Choice(CLASSES), default="feature_work", show_default=True,
              help="The action class of typing in permit requests.")
def mode(
    app: App, mode: str, reason: str, action_class: str, operator: str | None, request: str | None, format: str
) -> int:
    """Raise the mode by one step, or lower it to any: OBSERVE looks, SUGGEST proposes, EXECUTE types approved actions.

    The first mode begins a session. EXECUTE needs a daemon, a linked device and its kill switch ready. Exit 1:
    refused."""
    wish = {"mode": mode, "reason": reason, "action_class": action_class, **same_request(request)}
    if mode == "OBSERVE":
        answer = ask_to_lower(app, "pla.mode", operator, "no mode is lowered", **wish)
    else:
        answer = ask(app, "pla.mode", channel="cli", operator=acting(app, operator), **wish)
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        app.output.line(Styled("✓ mode", "green"), " ", mode_piece(document["mode"]), f", {document['session_id']}")
        withdrawn(app.output, document)
    else:
        refusal(app.output, f"the mode stays {document['mode']}", document)
    return answer.exit_code


@command("pmagent pla end", operator=True, request=True)
def end(app: App, operator: str | None, request: str | None, format: str) -> int:
    """End the session: the mode falls to OBSERVE, the device is disarmed, open proposals are withdrawn."""
    answer = ask_to_lower(app, "pla.end", operator, "no session is ended", **same_request(request))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        how = "✓ ending" if document["reasons"] else "✓ ended"
        app.output.line(Styled(how, "green"), f": {document['session_id']}")
        withdrawn(app.output, document)
        because(app.output, document)
    else:
        refusal(app.output, "nothing is ended", document)
    return answer.exit_code


@command("pmagent pla observe --frames frames", "pmagent pla observe --frames /dev/video0", operator=True, request=True)
@click.option("--frames", metavar="PATH", help="A folder of pictures, or a video device [default: pla.frames].")
def observe(app: App, frames: str | None, operator: str | None, request: str | None, format: str) -> int:
    """Look at the newest frame, and read its text if tesseract is installed. It proposes nothing."""
    who = acting(app, operator)
    answer = ask(app, "pla.observe", channel="cli", frames=frames_path(frames), operator=who, **same_request(request))
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif document["observed"] is None:
        refusal(app.output, "there is no frame", document)
    else:
        _frame_screen(app.output, document["observed"])
    return answer.exit_code


def frames_path(given: str | None) -> str:
    """The path of frames as the daemon needs it: absolute, from where the command stands."""
    import os

    return "" if given is None else os.path.abspath(given)


def _frame_screen(output: Output, frame: dict[str, Any]) -> None:
    output.line(Styled("✓ observed", "green"), f": {frame['name']}")
    output.line(f"  picture     {frame['width']} x {frame['height']}, {frame['size']} bytes, {frame['media_type']}")
    output.line(f"  sha256      {frame['sha256']}{'' if frame['kept'] else ', the picture is not kept'}")
    output.line(f"  read by     {frame['ocr'] or 'nobody'}")
    if frame["note"]:
        output.line("              ", shorten(frame["note"], output.columns - 14))
    for line in frame["ocr_text"].splitlines()[:20]:
        output.line("              │ ", Styled(shorten(line, output.columns - 18), "dim"))
