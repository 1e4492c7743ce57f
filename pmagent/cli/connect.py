"""``pmagent connect`` and ``pmagent disconnect``: making a harness start the hook, and undoing it exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import confirmed
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, ask
from pmagent.contracts.guest_calls import Harness
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.guests.connect import Plan
    from pmagent.guests.harnesses import Mode, Scope

HARNESSES = [name for name in get_args(Harness) if name != "script"]
WAIT_SECONDS = 20
WAIT_SECONDS_MAX = 600

_ARGUMENT = click.argument("harness", type=click.Choice(HARNESSES), metavar="HARNESS")
_SCOPES = (
    click.option("--project", "scope", flag_value="project", default=True, help="In this workspace [default]."),
    click.option("--user", "scope", flag_value="user", help="Everywhere, for this user."),
    click.option("--managed", "scope", flag_value="managed", help="For all users, as root: nobody switches it off."),
)
_YES = click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")


def _scoped(function: Any) -> Any:
    for option in (_YES, *reversed(_SCOPES)):
        function = option(function)
    return _ARGUMENT(function)


@command("pmagent connect claude", "pmagent connect codex --enforce --yes", "pmagent connect claude --user")
@_scoped
@click.option("--observe", "mode", flag_value="observe", default=True, help="Record, and hold nothing up [default].")
@click.option("--enforce", "mode", flag_value="enforce", help="Refuse what is not allowed, or cannot be judged.")
@click.option(
    "--wait", type=click.IntRange(0, WAIT_SECONDS_MAX), default=WAIT_SECONDS, show_default=True, metavar="SECONDS",
    help="So long a call is held while operators decide.",
)
@click.option("--plugin", type=click.Path(path_type=Path), metavar="DIR", help="Write a plugin of Claude Code instead.")
def connect(
    app: App, harness: str, scope: str, yes: bool, mode: str, wait: int, plugin: Path | None, format: str
) -> int:
    """Let HARNESS (claude, codex, gemini, cursor, copilot, opencode) tell this workspace's log what its agents do.

    Its settings get entries that start pmagent-hook; everybody else's stay. The difference is shown first, the log says
    who connects, and pmagent disconnect undoes it. Connecting again, in the other mode too, changes only that. Exit 1:
    you said no, or it cannot be done, and nothing was written; 8: it is written, and you have to do the rest."""
    from pmagent.guests import connect as connecting

    if plugin is not None:
        if harness != "claude":
            raise click.UsageError("--plugin is for claude")
        files = connecting.write_plugin(plugin, cast("Mode", mode), wait)
        said = {"plugin": str(plugin), "files": [str(path) for path in files]}
        app.output.answer(format, said, lambda: app.output.line(Styled("✓ written", "green"), f": {plugin}"))
        return Exit.DONE
    plan, version = connecting.plan_connect(
        app.layout, harness, cast("Scope", scope), cast("Mode", mode), wait, app.environ
    )
    for line in plan.difference:
        app.output.note(line)
    if plan.difference and not yes and not confirmed(app.output, f"change {plan.path}?", "--yes"):
        app.output.note("nothing was changed")
        return Exit.NO
    if plan.difference:
        _noted(app, f"connects {harness} ({scope}, {mode}): {plan.path}")
    left = connecting.connect(
        app.layout, harness, cast("Scope", scope), cast("Mode", mode), wait, plan, version, app.environ
    )
    for line in left:
        app.output.note(Styled("still to do:", "yellow"), f" {line}")
    known = connecting.read_record(app.layout).connections
    made = next(one for one in known if (one.harness, one.scope) == (harness, scope))
    text = f" {harness} ({scope}, {mode}): {plan.path}{'' if plan.difference else ' is as it was'}"
    document = {**connecting.document(made), "changed": bool(plan.difference), "left": left}
    mark = Styled("! written", "yellow") if left else Styled("✓ connected", "green")
    app.output.answer(format, document, lambda: app.output.line(mark, text))
    return Exit.CONDITIONAL if left else Exit.DONE


@command("pmagent disconnect claude", "pmagent disconnect codex --user --yes")
@_scoped
def disconnect(app: App, harness: str, scope: str, yes: bool, format: str) -> int:
    """Undo pmagent connect: each file becomes what it was, byte for byte; where others have changed one since, only the
    hook's entries are taken out. Exit 1: you said no, or it is not connected here."""
    from pmagent.guests import connect as connecting

    connection, plans = connecting.plan_disconnect(app.layout, harness, cast("Scope", scope))
    for plan in plans:
        _show(app, plan)
    if not yes and not confirmed(app.output, f"disconnect {harness} ({scope})?", "--yes"):
        app.output.note("nothing was changed")
        return Exit.NO
    _noted(app, f"disconnects {harness} ({scope}): {', '.join(str(plan.path) for plan in plans)}")
    connecting.disconnect(app.layout, connection, plans)
    document = {**connecting.document(connection), "exact": all(plan.exact for plan in plans)}
    text = f" {harness} ({scope}): {', '.join(str(plan.path) for plan in plans)}"
    app.output.answer(format, document, lambda: app.output.line(Styled("✓ disconnected", "green"), text))
    return Exit.DONE


def _noted(app: App, text: str) -> None:
    """Let the log say who changes what, before it is done. Raises PmagentError."""
    ask(app, "guests.note", text=text, operator=acting(app, None))


def _show(app: App, plan: Plan) -> None:
    if not plan.exact:
        app.output.note(Styled("note:", "yellow"), f" {plan.path} was changed since: only the hook's part is taken out")
    for line in plan.difference:
        app.output.note(line)
