"""``pmagent log prepare``: what the owner of a database does once, so that logs can lie in it."""

from __future__ import annotations

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.events.evidence import prepare_database
from pmagent.exitcodes import Exit


@command("pmagent log prepare postgresql://db1/pmagent --writer lab --reader viewer --worker hands")
@click.argument("database")
@click.option("--writer", "writers", multiple=True, metavar="ROLE", help="A role that may write logs.")
@click.option("--reader", "readers", multiple=True, metavar="ROLE", help="A role that may read every log.")
@click.option("--worker", "workers", multiple=True, metavar="ROLE", help="A role that may claim attempts.")
@click.option("--operator", "operators", multiple=True, metavar="ROLE=NAME",
              help="The operator behind a role: its requests over the database are that operator's (ROLE=: nobody's).")
def prepare(
    app: App, database: str, writers: tuple[str, ...], readers: tuple[str, ...], workers: tuple[str, ...],
    operators: tuple[str, ...], format: str,
) -> int:  # fmt: skip
    """Prepare a PostgreSQL DATABASE for logs: make the schema pm, the roles pm_owner, pm_writer, pm_reader and
    pm_worker, and the functions by which alone a log is written. Its owner runs this once, and again for a later
    release.

    The address names no log, and holds no password: PGPASSFILE, a service file or PGPASSWORD gives it."""
    from pmagent.pla.operators import checked

    if wrong := [one for one in operators if not one.partition("=")[0] or "=" not in one]:
        raise click.BadParameter(f"{wrong[0]!r} is not ROLE=NAME", param_hint="--operator")
    named = dict(one.partition("=")[::2] for one in operators)
    named = {role: checked(name, f"--operator {role}=") if name else "" for role, name in named.items()}
    made = prepare_database(database, writers, readers, named, workers)
    document = {
        "database": database, "made": made, "writers": writers, "readers": readers, "workers": workers,
        "operators": named,
    }  # fmt: skip
    what = "prepared" if made else "it was prepared already"
    app.output.answer(format, document, lambda: app.output.line(Styled("✓", "green"), f" {what}"))
    return Exit.DONE
