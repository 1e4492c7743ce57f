"""``pmagent oa context``: the task context that reasoning is given, shown and written."""

from __future__ import annotations

import re

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit


def _digest(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value and not re.fullmatch("[0-9a-f]{64}", value):
        raise click.BadParameter("it has to be 64 digits of lower-case hex, or empty")
    return value


@command("pmagent oa context --format json", "pmagent oa context --set share/oa/CONTEXT.json")
@click.option("--set", "given", metavar="FILE",
              help="Write the JSON object in FILE (-: stdin), wrapped in context or not.")
@click.option("--base", metavar="SHA256", callback=_digest,
              help="Write only if the file still has this SHA-256 (empty: only if there is no file).")
def context(app: App, given: str | None, base: str | None, format: str) -> int:
    """Show share/oa/CONTEXT.json, the task context for reasoning; with --set, write it.

    A context is a JSON object of at most 256 KiB; active_goal, if present, is text or null, constraints a list of
    texts. The output of --format json can be edited and passed to --set. The log records it first, so secrets in it are
    masked, and the masked text is written.

    Exit 1, and no change of the file, when the kernel is BLOCKED, when somebody else has changed the file meanwhile, or
    when it cannot be written."""
    if given is not None:
        return _set(app, given, base, format)
    if base is not None:
        raise click.UsageError("--base goes with --set", click.get_current_context())
    return _show(app, format)


def _show(app: App, format: str) -> int:
    import msgspec

    from pmagent.oa.context import look

    found = look(app.workspace)
    if format == "json":
        app.output.document(found)
        return Exit.DONE
    which = f"sha256 {found.sha256}" if found.sha256 else "there is no such file"
    app.output.line(found.path, Styled(f"  {which}", "dim"))
    app.output.block(msgspec.json.format(msgspec.json.encode(found.context), indent=2).decode())
    return Exit.DONE


def _set(app: App, given: str, base: str | None, format: str) -> int:
    from pmagent.actors.kernel.surfaces import SurfaceInvalid
    from pmagent.actors.kernel.surfaces import context as unwrapped
    from pmagent.cli.inputs import BadInput, json_object, read_input, source_of
    from pmagent.oa.context import PATH, write_context

    source = source_of(given)
    try:
        wanted = unwrapped(json_object(read_input(given), source))
    except SurfaceInvalid as error:
        raise BadInput(f"{source}: {error}", "pmagent oa context --help describes contexts") from error
    sha256 = write_context(wanted, app.workspace, base=base)
    line = Styled("✓ written", "green"), f": {PATH}", Styled(f"  sha256 {sha256}", "dim")
    app.output.answer(format, {"path": PATH, "sha256": sha256}, lambda: app.output.line(*line))
    return Exit.DONE
