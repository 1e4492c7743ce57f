"""``pmagent rubric convert``: a published rubric as one of this program, with what was assumed."""

from __future__ import annotations

from pathlib import Path

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import BadInput, read_input, source_of
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit


@command("pmagent rubric convert rubric.json mine.json")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
def convert(app: App, source: str, target: str, format: str) -> int:
    """Make a rubric for `pmagent audit` out of a published one: other names of keys, no success_pattern, levels of
    points, target `manual`.

    Every assumption is listed: read them, for the scores rest on them. Criteria that nobody can look at here are left
    out. OUT must not exist. Needs no workspace. Exit 2: IN is no rubric, or cannot be made into one."""
    import msgspec

    from pmagent.actors.audit.rubric import read_rubric
    from pmagent.actors.audit.rubric_convert import convert_rubric
    from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX

    content = read_input(source, RUBRIC_BYTES_MAX, "it has to hold a rubric")
    document, assumed = convert_rubric(content, source_of(source))
    made = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    rubric = read_rubric(made, f"{source_of(source)}, converted")
    try:
        with Path(target).open("xb") as file:
            file.write(made)
    except FileExistsError as error:
        raise BadInput(f"{target} exists", "name a file that does not exist") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{target} cannot be written: {getattr(error, 'strerror', None) or error}", "") from error
    if format == "json":
        app.output.document({"path": target, "dimensions": len(rubric.dimensions), "assumed": assumed})
        return Exit.DONE
    for one in assumed:
        app.output.line(Styled("assumed:", "yellow"), f" {one}")
    app.output.line(f"{target}: {len(rubric.dimensions)} criteria; {len(assumed)} assumptions")
    return Exit.DONE
