"""``pmagent trust``, ``--trust-workspace``, and the question on a terminal: accepting a workspace's configuration."""

from __future__ import annotations

import click
import msgspec

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.given import can_answer, confirmed
from pmagent.cli.output import Output, Styled
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit

_QUESTION = "let the workspace's configuration do this?"


@click.command(cls=Command, example=["pmagent trust", "pmagent trust --yes"])
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
@format_option()
@pass_app
def trust(app: App, yes: bool, format: str) -> int:
    """Show what the workspace's configuration lets be done, and accept it: programs, paths, network, policies.

    Nothing in a workspace is run before its configuration (orchestra.config.yaml, .pmagent/config.toml) was accepted,
    here or by pmagent init. An addition of a later version is asked for again; where there is nothing new, nobody is
    asked. A list of the console's operators that came from elsewhere is shown, and accepted, too. Exit 1: you said no.
    """
    from pmagent.console.auth import operators
    from pmagent.console.places import Places
    from pmagent.workspace.trust import Powers, accept, offer, summary

    workspace = app.workspace.resolve()
    found = offer(workspace)
    listed = Places(app.layout).operators
    strangers = operators.untrusted(listed)
    for line in summary(found.powers):
        app.output.note(line)
    _show_new(app.output, found.new.items if not found.first else [])
    if strangers is not None:
        app.output.note(Styled("new:", "yellow"), f" operators of the console: {', '.join(strangers[0])}")
    more = found.first or found.new != Powers() or strangers is not None
    if more and not yes and not confirmed(app.output, _QUESTION, "--yes"):
        app.output.note("it is not accepted, and nothing is run by it")
        return Exit.NO
    powers = accept(workspace, found)
    if strangers is not None:
        operators.accept(listed, strangers[1])
    if format == "json":
        app.output.document({"workspace": str(workspace), "accepted": True, **msgspec.to_builtins(powers)})
    else:
        app.output.line(Styled("✓ trusted", "green"), f": the configuration of {workspace}, as it is now")
    return Exit.DONE


def accept_as_is(app: App, *, always_shown: bool = False) -> None:
    """Accept the configuration as it lies there; what is new of it is shown. Raises RegistryUnusable, OSError."""
    from pmagent.workspace.trust import Powers, accept, lines, offer, summary

    workspace = app.workspace.resolve()
    found = offer(workspace)
    accept(workspace, found)
    if always_shown or (not found.first and found.new != Powers()):
        for line in summary(found.powers) if always_shown else lines(found.new):
            app.output.note(f"trusted: {line}")


def asked(app: App, error: PmagentError) -> bool:
    """Ask on a terminal whether to accept what ``error`` refused; whether it was accepted. The shown version is
    accepted, whatever the files say by then. Raises RegistryUnusable, OSError."""
    from pmagent.workspace.trust import Powers, accept, accept_also, lines, offer, summary

    if not can_answer(app.output):
        return False
    workspace = app.workspace.resolve()
    beyond: Powers | None = getattr(error, "beyond", None)
    found = offer(workspace)
    app.output.note(Styled("not accepted:", "yellow"), f" {error.message}")
    shown = lines(beyond) if beyond is not None else summary(found.powers) if found.first else lines(found.new)
    for line in shown:
        app.output.note(f"  {line}")
    if not confirmed(app.output, _QUESTION, "--trust-workspace"):
        return False
    if beyond is not None:
        accept_also(workspace, beyond)
    else:
        accept(workspace, found)
    return True


def _show_new(output: Output, new: list[str]) -> None:
    if new:
        output.note(Styled("new:", "yellow"), f" {'; '.join(new[:10])}{'; …' if len(new) > 10 else ''}")
