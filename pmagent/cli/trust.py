"""``pmagent trust``: accepting a workspace's configuration."""

from __future__ import annotations

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import confirmed
from pmagent.cli.output import Styled
from pmagent.cli.trust_prompt import QUESTION, show_new
from pmagent.exitcodes import Exit


@command("pmagent trust", "pmagent trust --yes")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
def trust(app: App, yes: bool, format: str) -> int:
    """Show the powers of the workspace's configuration, and accept it: programs, paths, network, policies.

    Nothing in a workspace is run before its configuration (orchestra.config.yaml, .pmagent/config.toml) was accepted,
    here or by pmagent init. Additions of a later version need another acceptance. A list of the console's operators
    that came from elsewhere is shown and accepted, too. Exit 1: you said no."""
    from pmagent.console.auth import operators
    from pmagent.console.paths import ConsolePaths
    from pmagent.workspace.trust import Powers, accept, offer, summary

    workspace = app.workspace.resolve()
    found = offer(workspace)
    listed = ConsolePaths(app.layout).operators
    strangers = operators.untrusted(listed)
    for line in summary(found.powers):
        app.output.note(line)
    show_new(app.output, found.new.items if not found.first else [])
    if strangers is not None:
        app.output.note(Styled("new:", "yellow"), f" operators of the console: {', '.join(strangers[0])}")
    more = found.first or found.new != Powers() or strangers is not None
    if more and not yes and not confirmed(app.output, QUESTION, "--yes"):
        app.output.note("it is not accepted, and nothing is run by it")
        return Exit.NO
    powers = accept(workspace, found)
    if strangers is not None:
        operators.accept(listed, strangers[1])
    text = Styled("✓ trusted", "green"), f": the configuration of {workspace}, as it is now"
    document = {"workspace": str(workspace), "accepted": True, **msgspec.to_builtins(powers)}
    app.output.answer(format, document, lambda: app.output.line(*text))
    return Exit.DONE
