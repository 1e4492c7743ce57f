from __future__ import annotations

import getpass
import sys
from datetime import date
from pathlib import Path

import click

from . import stock
from .amounts import Amount, BadAmount
from .book import Book, BookError, Bottle
from .hazards import Group


class AmountType(click.ParamType):
    name = "amount"

    def convert(self, value, param, ctx):
        try:
            return value if isinstance(value, Amount) else Amount.parse(value)
        except BadAmount as error:
            self.fail(str(error), param, ctx)


def row(bottle: Bottle) -> str:
    expires = bottle.expires.isoformat() if bottle.expires else "-"
    return f"{bottle.id:>5}  {bottle.name:<32} {str(bottle.amount):>9}  {bottle.place:<8} {expires}"


@click.group()
@click.option("--book", envvar="REAGENTBOOK", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_context
def rb(ctx: click.Context, book: Path) -> None:
    """Inventory of the lab's reagents."""
    ctx.obj = Book(book)


@rb.command()
@click.argument("name")
@click.option("--cas")
@click.option("--amount", type=AmountType(), required=True)
@click.option("--place", required=True)
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]))
@click.option("--hazard", type=click.Choice([one.value for one in Group]), default="none")
@click.option("--by", default=getpass.getuser)
@click.pass_obj
def add(book: Book, name, cas, amount, place, expires, hazard, by) -> None:
    """Put a new bottle into the book."""
    bottle = Bottle(name, amount, place, cas, expires.date() if expires else None, Group(hazard))
    click.echo(book.add([bottle], by)[0])


@rb.command()
@click.argument("id", type=int)
@click.argument("amount", type=AmountType())
@click.option("--by", default=getpass.getuser)
@click.pass_obj
def take(book: Book, id: int, amount: Amount, by: str) -> None:
    """Take an amount out of a bottle."""
    click.echo(row(book.take(id, amount, by)))


@rb.command()
@click.argument("id", type=int)
@click.argument("place")
@click.option("--by", default=getpass.getuser)
@click.pass_obj
def move(book: Book, id: int, place: str, by: str) -> None:
    """Put a bottle somewhere else."""
    click.echo(row(book.move(id, place, by)))


@rb.command()
@click.argument("words")
@click.pass_obj
def find(book: Book, words: str) -> None:
    """Look for a name or CAS number."""
    for bottle in book.find(words):
        click.echo(row(bottle))


@rb.command()
@click.option("--days", default=30, type=click.IntRange(0))
@click.pass_obj
def due(book: Book, days: int) -> None:
    """What expires soon."""
    found = book.due(date.today(), days)
    for bottle in found:
        click.echo(row(bottle))
    sys.exit(1 if found else 0)


@rb.command()
@click.pass_obj
def check(book: Book) -> None:
    """Neighbours that must be apart."""
    found = book.clashes()
    for one, other in found:
        click.echo(f"{one.place}: {one.name} ({one.hazard.value}) beside {other.name} ({other.hazard.value})")
    sys.exit(1 if found else 0)


@rb.command("import")
@click.argument("table", type=click.Path(exists=True, path_type=Path))
@click.option("--by", default=getpass.getuser)
@click.pass_obj
def import_(book: Book, table: Path, by: str) -> None:
    """Add all bottles of a CSV table, or none."""
    click.echo(f"{len(book.add(stock.read(table), by))} bottles")


@rb.command()
@click.argument("id", type=int)
@click.pass_obj
def log(book: Book, id: int) -> None:
    """Who did what to a bottle."""
    for at, who, what in book.changes(id):
        click.echo(f"{at}  {who:<8} {what}")


def main() -> None:
    try:
        rb()
    except (BookError, BadAmount) as error:
        sys.exit(f"rb: {error}")
