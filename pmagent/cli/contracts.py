"""``pmagent contracts``: documents held against the PLA's contracts, and which contracts there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import BadInput, read_input, source_of
from pmagent.cli.output import Output, Styled
from pmagent.contracts.checking import CONTRACTS
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.pla.checked_documents import CheckedFile

FILE_BYTES_MAX = 256 * 1024 * 1024
"""A session log may be long; each of its lines is not."""
SHOWN_MAX = 20
"""So many faults of a file are shown to people; a program gets all."""


@command("pmagent contracts check", "pmagent contracts check --format json")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option(
    "--contract", type=click.Choice(CONTRACTS), metavar="NAME",
    help="The contract of all of them [default: the one in a file's name, else by a document's keys].",
)
def check(app: App, files: tuple[str, ...], contract: str | None, format: str) -> int:
    """Check documents against their contracts: FILE is JSON, or has one document a line; - is stdin. Without FILE,
    check the workspace's jobs and session logs.

    Exit 0: all are valid. Exit 1: one is not; the place and the fault are shown. Exit 2: a file cannot be read, or does
    not show its contract."""
    import msgspec

    from pmagent.pla.checked_documents import checked_file

    checked = [
        checked_file(source_of(name), read_input(name, FILE_BYTES_MAX, "it has to hold JSON"), contract)
        for name in files or _own(app)
    ]
    ok = not any(one.faults for one in checked)
    if format == "json":
        app.output.document({"ok": ok, "files": msgspec.to_builtins(checked)})
    elif not checked:
        app.output.line("no documents yet: runs, audits and PLA sessions write jobs/ and sessions/")
    for one in checked if format == "text" else ():
        _screen(app.output, one)
    return Exit.DONE if ok else Exit.NO


def _own(app: App) -> list[str]:
    """The workspace's documents that keep contracts of these. Raises BadInput."""
    found = [*app.workspace.glob("jobs/*.json"), *app.workspace.glob("sessions/*.jsonl")]
    for path in found:
        if not path.is_file():  # a pipe would be waited for
            raise BadInput(f"{path} is no regular file", "no document is; take it away")
    return [str(path) for path in sorted(found) if not path.name.endswith(".violations.jsonl")]


def _screen(output: Output, checked: CheckedFile) -> None:
    counted = ", ".join(f"{count} {name}" if count > 1 else name for name, count in checked.contracts.items())
    mark = Styled("✗", "red") if checked.faults else Styled("✓", "green")
    output.line(mark, f" {checked.file}: {counted or 'no JSON'}")
    for fault in checked.faults[:SHOWN_MAX]:
        line = f"line {fault.line}" if fault.line else ""
        where = ", ".join(part for part in (line, fault.pointer) if part) or "the whole"
        output.line("    ", Styled(where, "bold"), f"  {fault.text} ({fault.kind})")
    if len(checked.faults) > SHOWN_MAX:
        output.line(f"    and {len(checked.faults) - SHOWN_MAX} more: --format json")


@command("pmagent contracts list", "pmagent contracts list --format json", name="list")
def listing(app: App, format: str) -> int:
    """The PLA's contracts, their version, and the hash that the device has to have."""
    from pmagent.contracts.pla import CONTRACT_VERSION
    from pmagent.contracts.pla_schemas import CONTRACT_HASH, SCHEMAS

    rows = [
        {"name": name, "id": schema["$id"], "description": schema["description"]} for name, schema in SCHEMAS.items()
    ]
    if format == "json":
        app.output.document({"version": CONTRACT_VERSION, "hash": CONTRACT_HASH, "contracts": rows})
        return Exit.DONE
    for one in rows:
        app.output.line(Styled(f"{one['name']:<16}", "bold"), f" {one['description']}")
    app.output.line("")
    app.output.line(f"{'version':<16} {CONTRACT_VERSION}")
    app.output.line(f"{'hash':<16} {CONTRACT_HASH}")
    return Exit.DONE
