"""``pmagent pla propose``: ask for a proposal, by a literal goal, of a model, or with an external brain's document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, command, same_request
from pmagent.cli.inputs import STDIN, read_input, source_of
from pmagent.cli.pla.common import acting, ask, proof_of, refusal, secret_option, violation
from pmagent.cli.pla.proposal_screen import show_proposal
from pmagent.cli.pla.session import frames_path

if TYPE_CHECKING:
    from pmagent.service.answer import Answer

DOCUMENT_BYTES_MAX: Final = 65_536
GOAL_BYTES_MAX: Final = 65_536


@command(
    "pmagent pla propose 'type: ls -la'", "pmagent pla propose 'keys: ctrl+alt+t' --why 'a terminal is needed first'",
    "pmagent pla propose 'Open the log and read its end' --model anthropic:NAME --frames /dev/video0",
    "pmagent pla propose --document proposal.json", operator=True, request=True,
)
@click.argument("goal", required=False, default="")
@click.option("--why", default="", metavar="TEXT", help="The reason, for the operator who decides.")
@click.option("--model", default="", metavar="NAME", help="The model that proposes from a frame, as provider:model "
              "[default: pla.model, where GOAL states nothing literally].")
@click.option("--frames", metavar="PATH", help="A folder of pictures, or a video device [default: pla.frames].")
@click.option("--look", is_flag=True, help="Look at the newest frame first, also for a literal goal.")
@click.option("--document", metavar="FILE", help="An action_proposal document (JSON) of an external brain; - is stdin.")
@secret_option()
def propose(
    app: App, goal: str, why: str, model: str, frames: str | None, look: bool, document: str | None,
    secret_stdin: bool, operator: str | None, request: str | None, format: str,
) -> int:
    """Ask for a proposal. It types nothing: somebody has to approve it, and it expires.

    GOAL states an action literally (- reads it from stdin, so that it stands in no shell's history):

    \b
      type: TEXT         the rest, as it stands
      type: "TEXT"       the same, with \\n \\t \\" \\\\
      keys: ctrl+alt+t   pressed together, six at most
      move: 10 -5        the pointer, to the right and down
      click: left        left, right or middle

    The keys are ctrl shift alt gui, a to z, 0 to 9, f1 to f12, up down left right home end page_up page_down enter
    escape tab space backspace delete insert.

    Or GOAL says what is wanted, and a model makes a proposal of it and of the newest frame. Only in SUGGEST and
    EXECUTE; one proposal is open at a time. With two_persons = true, your secret of the console proves who you are.
    Exit 1: nothing is proposed, with the reasons."""  # noqa: D301 - click knows the character by it
    if document is not None and (goal or why or model or frames or look):
        raise click.UsageError("--document says all of it; leave GOAL and the other options out")
    if secret_stdin and STDIN in (goal, document):
        raise click.UsageError("--secret-stdin takes stdin; give the goal or the document otherwise")
    who = acting(app, operator)
    proof = proof_of(app, who, wanted=app.resolved.settings.pla.two_persons, from_stdin=secret_stdin)
    given: dict[str, Any] = {"channel": "cli", "operator": who, **proof, **same_request(request)}
    if document is not None:
        answer = ask(app, "pla.propose", document=document_text(document), **given)
    else:
        goal = _goal_from_stdin() if goal == STDIN else goal
        answer = ask(
            app, "pla.propose", goal=goal, why=why, model=model, frames=frames_path(frames), look=look, **given
        )
    _show(app, answer, as_json=format == "json")
    return answer.exit_code


def document_text(where: str) -> str:
    """The text of a contract document; that it is one is for the border to say. Raises BadInput."""
    from pmagent.cli.inputs import BadInput

    raw = read_input(where, DOCUMENT_BYTES_MAX, "it has to hold one JSON document")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{source_of(where)} is not UTF-8 (byte {error.start})", "convert it first") from error


def _goal_from_stdin() -> str:
    """A goal of one line; further lines have to be written as escapes in quotes. Raises BadInput."""
    from pmagent.cli.inputs import BadInput

    raw = read_input(STDIN, GOAL_BYTES_MAX, "it has to hold the goal")
    try:
        return raw.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"stdin is not UTF-8 (byte {error.start})", "convert it first") from error


def _show(app: App, answer: Answer, *, as_json: bool) -> None:
    document = answer.document
    if as_json:
        app.output.document(document)
    elif document.get("violation"):
        violation(app.output, document)
    elif not document["proposed"]:
        refusal(app.output, "nothing is proposed", document)
    else:
        show_proposal(app.output, document)
        app.output.note(f"pmagent pla approve {document['proposal_id'][:12]} decides on it, or reject; or it expires")


