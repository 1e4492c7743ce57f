"""Parts that the PLA's commands share: the operator, asking, and how a refusal is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pmagent.cli.frame import App
from pmagent.cli.output import Output, Styled, warned
from pmagent.contracts.pla import REASON_CHARS_MAX

if TYPE_CHECKING:
    from pmagent.service.answer import Answer

SECRET_BYTES_MAX: Final = 4096

F = TypeVar("F", bound=Callable[..., Any])

MODE_STYLES: Final = {"OBSERVE": "green", "SUGGEST": "yellow", "EXECUTE": "red"}


def acting(app: App, given: str | None) -> str:
    """The operator who acts. Raises BadOperator, ConfigError."""
    from pmagent.pla.operators import checked, login

    if given is not None:
        return checked(given, "--operator")
    configured = app.resolved.settings.pla.operator
    return checked(configured, "the setting pla.operator") if configured else login()


def secret_option() -> Callable[[F], F]:
    """``--secret-stdin``: prove who acts."""
    told = "Read your secret of the console from stdin, as a proof of who you are (two_persons)."
    return click.option("--secret-stdin", is_flag=True, help=told)


def given_secret(app: App, what: str) -> str:
    """A secret: typed unseen, or from stdin where something is fed into it. Raises BadInput."""
    from pmagent.cli.inputs import STDIN, BadInput, read_input, stdin_waits

    if not stdin_waits():
        import getpass

        app.output.note(f"{what}, then Enter; it is not shown:")
        return getpass.getpass("")
    raw = read_input(STDIN, SECRET_BYTES_MAX, "it has to hold the secret, on one line")
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise BadInput("the secret is no text in UTF-8", "type another one") from None


def proof_of(app: App, who: str, *, wanted: bool, from_stdin: bool) -> dict[str, str]:
    """The argument that proves who acts: asked for on a terminal where it is ``wanted``, or read from stdin."""
    if from_stdin or (wanted and app.output.notes_seen and is_answered()):
        return {"secret": given_secret(app, f"two persons: the secret of {who} for the console")}
    return {}


def is_answered() -> bool:
    """Whether somebody can type an answer."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False


def ask(app: App, operation: str, **arguments: Any) -> Answer:
    """Perform an operation, through the daemon or here; what it warns of is told. Raises PmagentError."""
    from pmagent.pla.arguments import readable
    from pmagent.service.operations import call

    readable(arguments)
    return warned(app.output, call(app.workspace, operation, arguments, app.output.note))


def ask_to_lower(app: App, operation: str, operator: str | None, undone: str, **arguments: str) -> Answer:
    """Ask for what ends or lowers something, as ``operator``; ``undone`` says what is not done where that cannot be.

    Where a run or an audit of another shell holds the log, it takes no requests, and that is said at once: who wants to
    stop something has no time to wait. Settings that cannot be read, or name an operator that can be none, keep nobody
    from it; they are warned of. Nor does a reason that is no UTF-8: what cannot be written of it becomes a question
    mark, and what is too long of it is left out. Raises PmagentError.
    """
    from pmagent.jobs.following import HeldByJob
    from pmagent.jobs.registry import held_by_job
    from pmagent.pla.operators import BadOperator, checked, login
    from pmagent.service.client import daemon_listens
    from pmagent.service.operations import call
    from pmagent.workspace.layout import Layout
    from pmagent.workspace.settings import workspace_of
    from pmagent.workspace.settings_programs import ConfigError

    layout = Layout(workspace_of(app.workspace_flag, app.environ))
    held = None if daemon_listens(layout) else held_by_job(layout)  # a database is not waited for beside a daemon
    if held is not None:
        what = f"{undone}: the log is held by the {held.kind.word} of another shell ({held.process})"
        raise HeldByJob(what, "Ctrl-C there ends it; beside a daemon (pmagent up) it can be asked for")
    given = None if operator is None else checked(operator, "--operator")
    try:
        workspace, who = app.workspace, acting(app, given)
    except (ConfigError, BadOperator) as error:
        workspace, who = workspace_of(app.workspace_flag, app.environ), given or login()
        app.output.note(Styled("warning:", "yellow"), f" {error.message}; {who} goes on without the settings")
    written = {name: text.encode("utf-8", "replace").decode()[:REASON_CHARS_MAX] for name, text in arguments.items()}
    asked = {**written, "operator": who, "channel": "cli"}
    return warned(app.output, call(workspace, operation, asked, app.output.note))


def refusal(output: Output, what: str, document: dict[str, Any]) -> None:
    """A refusal: what was not done, why, and what would mend it."""
    output.line(Styled("✗ refused", "red"), f": {what}")
    because(output, document)


def because(output: Output, document: dict[str, Any]) -> None:
    """The reasons of an answer, and what would mend them."""
    from pmagent.actors.pla.switch import said

    for reason in document["reasons"]:
        output.line(f"  {said(reason)}")
    for mend in dict.fromkeys(document["mend"]):  # several reasons may have one way out
        output.note(Styled("hint:", "cyan"), f" {mend}")


def violation(output: Output, document: dict[str, Any]) -> None:
    """A document that is none: the violation that it became."""
    output.line(Styled("✗ refused", "red"), f": this {document['contract']} is not taken: {document['text']}")
    output.line(f"  a violation, {document['kind']} ({document['severity']}): {document['handling']}")
    if document.get("lowered"):
        output.line(f"  the mode is {document['mode']} now")
    withdrawn(output, document)
    output.note(Styled("hint:", "cyan"), " nothing of it was taken; hand in another document")


def withdrawn(output: Output, document: dict[str, Any]) -> None:
    """The proposals that went with the mode."""
    for name in document.get("withdrawn", ()):
        output.line(f"  {name} is withdrawn")


def mode_piece(mode: str) -> Styled:
    """A mode in its colour."""
    return Styled(mode, MODE_STYLES.get(mode, "dim"))


def switch_piece(state: str) -> Styled:
    """How the kill switch stands, in its colour."""
    from pmagent.actors.pla.switch import SAID

    return Styled(SAID.get(state, state), "green" if state == "ARMED" else "red")
