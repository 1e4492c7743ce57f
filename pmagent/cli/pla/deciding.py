"""``pmagent pla approve|reject``: an operator's decision on exactly what was shown (docs/design.md §16.4)."""

from __future__ import annotations

import sys
import termios
import time
from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.clean import is_seen
from pmagent.cli.frame import App, command, same_request
from pmagent.cli.inputs import STDIN
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import (
    acting,
    ask,
    is_answered,
    proof_of,
    refusal,
    secret_option,
    violation,
)
from pmagent.cli.pla.proposal_screen import show_proposal
from pmagent.cli.pla.proposing import document_text
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit
from pmagent.when import spoken

if TYPE_CHECKING:
    from pmagent.pla.consequences import Means
    from pmagent.service.answer import Answer

OUTCOME_SECONDS: Final = 300.0
"""So long an execution is waited for: typing takes at most three minutes."""
_MARGIN_SECONDS: Final = 0.1
_YES: Final = "yes"


@command(
    "pmagent pla approve prop-5b0c",
    "pmagent pla approve prop-5b0c --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pmagent pla approve --document decision.json", operator=True, request=True,
)
@click.argument("proposal_id", required=False, default="")
@click.option("--digest", metavar="HEX", help="The digest of the shown bytes; without it, they are shown now.")
@click.option("--reveal", is_flag=True, help="Show masked text, too, out of the daemon's memory.")
@click.option("--acknowledge-credentials", "acknowledged", is_flag=True,
              help="Acknowledge that it holds credentials; they can be approved 5 s after the proposal.")
@click.option("--document", metavar="FILE", help="An action_decision document (JSON); - is stdin.")
@secret_option()
@click.option("--no-wait", is_flag=True, help="Do not wait until it has been typed.")
def approve(
    app: App, proposal_id: str, digest: str | None, reveal: bool, acknowledged: bool, document: str | None,
    secret_stdin: bool, no_wait: bool, operator: str | None, request: str | None, format: str,
) -> int:
    """Approve one proposal, once, for exactly the shown bytes: in EXECUTE they are typed, in SUGGEST the approval is
    recorded.

    PROPOSAL_ID may be the beginning of an id; the default is the open proposal. On a terminal it is shown, and typing
    yes approves it; elsewhere --digest names the shown bytes. With two_persons = true, your secret of the console
    proves who you are. Exit 0: typed, or recorded. Exit 1: refused, not typed, or nobody can tell how much was
    typed."""
    as_json = format == "json"
    if secret_stdin and (document == STDIN or (document is None and digest is None)):
        raise click.UsageError("--secret-stdin takes stdin: say what was shown, with --digest or --document FILE")
    if document is not None:
        _only_document(proposal_id=proposal_id, digest=digest, reveal=reveal, acknowledged=acknowledged)
        who = acting(app, operator)
        decided = ask(app, "pla.decide", document=document_text(document), decision="APPROVED", channel="cli",
                      operator=who, **proof_of(app, who, wanted=False, from_stdin=secret_stdin),
                      **same_request(request))
    else:
        who = acting(app, operator)
        shown, seen_mode = _shown(app, proposal_id, who, reveal=reveal, ask_yes=digest is None, as_json=as_json)
        if shown["credential_warning"] and acknowledged:
            _wait_with_credentials(app.output, shown)
        decided = ask(
            app, "pla.decide", proposal_id=shown["proposal_id"], decision="APPROVED", acknowledged=acknowledged,
            digest=shown["digest"] if digest is None else digest, channel="cli", operator=who, seen_mode=seen_mode,
            **proof_of(app, who, wanted=shown["two_persons"], from_stdin=secret_stdin), **same_request(request),
        )  # fmt: skip
    return _approved(app, decided, wait=not no_wait, as_json=as_json)


@command("pmagent pla reject prop-5b0c --reason 'the wrong window'", operator=True, request=True)
@click.argument("proposal_id", required=False, default="")
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log; required.")
@click.option("--document", metavar="FILE", help="An action_decision document (JSON); - is stdin.")
def reject(
    app: App, proposal_id: str, reason: str, document: str | None, operator: str | None, request: str | None,
    format: str,
) -> int:
    """Reject a proposal, with a reason. PROPOSAL_ID as for approve."""
    given: dict[str, Any] = {
        "decision": "REJECTED", "channel": "cli", "operator": acting(app, operator), **same_request(request),
    }  # fmt: skip
    if document is not None:
        _only_document(proposal_id=proposal_id, reason=reason)
        answer = ask(app, "pla.decide", document=document_text(document), **given)
    else:
        if not is_seen(reason):
            raise click.UsageError("a rejection needs a reason: --reason TEXT")
        shown = ask(app, "pla.show", proposal_id=proposal_id).document
        answer = ask(
            app, "pla.decide", proposal_id=shown["proposal_id"], digest=shown["digest"], reason=reason, **given
        )
    if format == "json":
        app.output.document(answer.document)
    elif not _show_refusal(app.output, "the rejection counts for nothing", answer.document):
        app.output.line(Styled("✓ rejected", "green"), f": {answer.document['proposal_id']}")
    return answer.exit_code


def _only_document(**others: object) -> None:
    """Raises UsageError where something else is given besides a document, that says all of it."""
    named = [name.replace("_", "-") for name, value in others.items() if value]
    if named:
        raise click.UsageError(f"--document says all of it; leave {named[0]} out")


def _shown(
    app: App, proposal_id: str, who: str, *, reveal: bool, ask_yes: bool, as_json: bool
) -> tuple[dict[str, Any], str]:
    """The proposal as it stands, and the mode in which it was shown; on a terminal it is shown, with what approving it
    would do now, and approving it has to be confirmed ("": nothing was shown). Raises NobodyShown, Exit when the answer
    is not yes."""
    seen_by, seen_mode = {"operator": who, "channel": "cli"} if reveal else {}, ""
    unseen = ask_yes and (as_json or not (is_answered() and app.output.is_seen))
    shown = ask(app, "pla.show", proposal_id=proposal_id, reveal=reveal and not unseen, **seen_by).document
    if unseen:
        repeated = f"pmagent pla approve {shown['proposal_id']} --digest {shown['digest']}"
        raise NobodyShown("nobody is shown anything here, so --digest has to say what was shown", repeated)
    if ask_yes and shown["stands"] == "open":
        if shown["masked"] and shown.get("plain") is None:
            raise _unseen(reveal=reveal)
        does, seen_mode = _means(app, shown["machine"])
        _tell_means(app.output, shown, does)
        app.output.flush()
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before it was shown approves nothing
        app.output.note(Styled(does.act, "bold"), f": exactly this, once? type {_YES} and Enter:")
        if sys.stdin.readline().strip() != _YES:
            app.output.note("it is not approved, and stays open")
            raise click.exceptions.Exit(Exit.NO)
        now, mode = _means(app, shown["machine"])
        if mode == seen_mode and now != does:  # the daemon refuses another mode, and the log tells of it
            before, after = ("; ".join([one.act, *one.hindered]) for one in (does, now))
            what = f"nothing is approved: when it was shown, a yes meant: {before}; now it means: {after}"
            raise Changed(what, f"pmagent pla approve {shown['proposal_id'][:12]} shows it again, and asks")
    return shown, seen_mode


class NobodyShown(PmagentError, exit_code=Exit.USAGE):
    """There is no terminal on which the proposal could be shown; nothing was asked."""


class Changed(PmagentError, exit_code=Exit.NO):
    """An approval would do something else than was shown; nothing is approved."""


def _means(app: App, machine: str | None) -> tuple[Means, str]:
    """The consequence of approving now a proposal for this machine, and the mode that holds."""
    from pmagent.pla.consequences import means

    pla = ask(app, "pla.status").document
    return means(pla, machine, paused=False), pla["mode"]


def _tell_means(output: Output, shown: dict[str, Any], does: Means) -> None:
    """Show the proposal, and what approving it does."""
    show_proposal(output, shown)
    output.line("  approving   ", does.text)
    for one in does.hindered:
        output.line("              ", one)


def _unseen(*, reveal: bool) -> Exception:
    """Nobody approves what they have not seen: a mask may hide anything."""
    if not reveal:
        return click.UsageError("what would be typed is masked: --reveal shows it, and then asks")
    from pmagent.pla.reading import NotHeld

    return NotHeld("the masked text is not held any more, so it cannot be shown, and not be typed", "propose it again")


def _wait_with_credentials(output: Output, shown: dict[str, Any]) -> None:
    """Credentials stand for a while before they can be approved; what is left of that is waited for."""
    from pmagent.contracts.pla import CREDENTIAL_SECONDS
    from pmagent.events.log import now
    from pmagent.when import seconds_between

    # The log's time may stand ahead of the clock: it is never longer than this.
    left = min(CREDENTIAL_SECONDS, CREDENTIAL_SECONDS - seconds_between(shown["proposed_at"], now()))
    if shown["stands"] == "open" and left > 0:
        output.note(f"it holds what looks like credentials; {spoken(left)} more to read it again (Ctrl-C leaves it)")
        time.sleep(left + _MARGIN_SECONDS)


def _approved(app: App, decided: Answer, *, wait: bool, as_json: bool) -> int:
    """Show what became of an approval, and wait for its execution, if it has one."""
    document, outcome, code = decided.document, None, decided.exit_code
    taken = document.get("decision") == "approved"
    if taken and not (document["executes"] and not wait):
        if document["executes"]:
            app.output.note("approved; it is being typed (pmagent pla disarm ends that)")
        answer = ask(app, "pla.outcome", proposal_id=document["proposal_id"], seconds=OUTCOME_SECONDS)
        outcome, code = answer.document, answer.exit_code
    if as_json:
        app.output.document({"decision": document, "outcome": outcome})
    elif not _show_refusal(app.output, "nothing is approved", document):
        _outcome_screen(app.output, document, outcome)
    return code


def _show_refusal(output: Output, what: str, document: dict[str, Any]) -> bool:
    if document.get("violation"):
        violation(output, document)
    elif document["decision"] == "decision_refused":
        refusal(output, what, document)
    else:
        return False
    return True


def _outcome_screen(output: Output, decision: dict[str, Any], outcome: dict[str, Any] | None) -> None:
    name = decision["proposal_id"]
    if outcome is None:
        output.line(Styled("✓ approved", "green"), f": {name}; pmagent pla show {name[:12]} tells what becomes of it")
        return
    from pmagent.actors.pla.switch import said

    why = f": {said(outcome['why'])}" if outcome["why"] else ""
    if outcome["outcome"] == "executed":
        output.line(Styled("✓ executed", "green"), f": {name}")
        output.line("  all its reports were handed to USB; what the machine made of them is seen on its screen")
    elif outcome["outcome"] == "recorded":
        output.line(Styled("✓ approved", "green"), f" and recorded: {name}; nothing is typed in this mode")
    elif outcome["outcome"] == "unknown":
        output.line(Styled("✗ outcome unknown", "red"), f": {name}{why}")
        what = "look at the machine's screen: between nothing and all of it was typed. It is never typed again"
        output.note(Styled("hint:", "cyan"), f" {what}; what is missing has to be proposed anew")
    else:
        output.line(Styled(f"✗ {outcome['outcome'].replace('_', ' ')}", "red"), f": {name}{why}")
        output.note(Styled("hint:", "cyan"), " pmagent pla status says how the device stands")
