"""``pmagent console``: the one-time address; ``pmagent operators``: who may enter, and as what."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, given_secret

if TYPE_CHECKING:
    from pathlib import Path

    from pmagent.console.address import Address
    from pmagent.console.auth.operators import Operator, Role
    from pmagent.console.paths import ConsolePaths

READY_SECONDS: Final = 60.0
"""So long a daemon that has just come up may take to serve its console."""
TRY_SECONDS: Final = 0.05

_ROLES: Final = click.Choice(["view", "approve"])
_secret_stdin: Final = click.option(
    "--secret-stdin", is_flag=True, help="Read the secret from stdin; without it one is generated, and shown once."
)


@command("pmagent console", "pmagent console --operator ada --format json", reads=True)
@click.option("--operator", metavar="NAME",
              help="Your name as operator [default: the setting pla.operator, else the login name].")
def console(app: App, operator: str | None, format: str) -> int:
    """Print an address that admits one operator to the console of the running daemon: once, within five minutes.

    Anyone with the address gets in: open it in a browser, and show it to nobody. Without operators yet, you become
    the first, with the role approve. Exit 5 when no daemon runs."""
    from pmagent.console.auth.entrance import invite
    from pmagent.console.auth.invites import SECONDS

    address = _served(app)
    paths = _paths(app)
    entering = _entering(app, paths, acting(app, operator))
    url = f"{address.url}/enter?token={invite(paths, entering)}"
    if format == "json":
        app.output.document({
            "url": url, "operator": entering.name, "role": entering.role, "seconds": int(SECONDS),
            "socket": address.path or None,
        })  # fmt: skip
    else:
        app.output.line(url)
    app.output.note(f"for {entering.name}, who may {_may(entering.role)}; once, within {SECONDS / 60:.0f} minutes")
    if address.path:
        app.output.note(f"it is served on the socket {address.path}; to reach it with a browser, forward a port to it")
        app.output.note("(ssh -L 8000:SOCKET HOST), and write that port into the address: http://localhost:8000/enter…")
    return 0


@command("pmagent operators add bob --role approve", "pmagent operators add eve --secret-stdin < secret.txt")
@click.argument("name")
@click.option("--role", type=_ROLES, default="view", show_default=True,
              help="view: sees all, may stop, changes nothing else. approve: may do all that the pages offer.")
@_secret_stdin
def add(app: App, name: str, role: Role, secret_stdin: bool, format: str) -> int:
    """Add the operator NAME, who may enter the console from now on.

    Only a scrypt hash of the secret is kept. A secret has at least 12 characters."""
    from pmagent.console.auth import operators

    file = _paths(app).operators
    operators.free(file, name)  # before a secret is asked for, and computed
    secret, made = _secret(app, from_stdin=secret_stdin)
    app.layout.prepare()  # where nothing but the surfaces is, yet
    added = operators.add(file, name, role, secret)
    _tell(app, format, added, "added", made)
    return 0


@command("pmagent operators list", reads=True)
def listing(app: App, format: str) -> int:
    """The operators: names, roles, and whether they have a secret."""
    from pmagent.console.auth import operators

    known = operators.read(_paths(app).operators)
    if format == "json":
        app.output.document({"operators": [_document(operator) for operator in known.values()]})
        return 0
    for operator in known.values():
        secret = "secret" if operator.secret is not None else "one-time addresses only"
        secret += f", {len(operator.passkeys)} passkeys" if operator.passkeys else ""
        app.output.line(f"{operator.name:<24}  {operator.role:<7}  {secret}")
    if not known:
        app.output.line("there are none yet; pmagent operators add NAME, or pmagent console adds you")
    return 0


@command("pmagent operators role ada approve")
@click.argument("name")
@click.argument("role", type=_ROLES)
def role(app: App, name: str, role: Role, format: str) -> int:
    """Give the operator NAME the role view or approve. It holds at once, also in open sessions."""
    from pmagent.console.auth import operators

    file = _paths(app).operators
    operators.named(file, name)  # where nothing but the surfaces is, nothing is made for it
    _tell(app, format, operators.set_role(file, name, role), f"may {_may(role)} from now on", None)
    return 0


@command("pmagent operators secret ada", "pmagent operators secret ada --none")
@click.argument("name")
@_secret_stdin
@click.option("--none", "without", is_flag=True, help="Remove the secret: only one-time addresses admit.")
def secret(app: App, name: str, secret_stdin: bool, without: bool, format: str) -> int:
    """Give the operator NAME another secret. Open sessions of this name end."""
    from pmagent.console.auth import operators

    if secret_stdin and without:
        raise click.UsageError("--secret-stdin gives one, --none takes it away; leave one out")
    file = _paths(app).operators
    operators.named(file, name)
    given, made = (None, None) if without else _secret(app, from_stdin=secret_stdin)
    _tell(app, format, operators.set_secret(file, name, given), "has another secret" if given else "has none", made)
    return 0


@command("pmagent operators remove ada")
@click.argument("name")
def remove(app: App, name: str, format: str) -> int:
    """Remove the operator NAME. Open sessions of this name end."""
    from pmagent.console.auth import operators

    file = _paths(app).operators
    operators.named(file, name)
    _tell(app, format, operators.remove(file, name), "removed", None)
    return 0


@command("pmagent operators passkeys ada", "pmagent operators passkeys ada --remove mV5x")
@click.argument("name")
@click.option("--remove", "gone", metavar="ID", help="Remove this passkey; the beginning of its id is enough.")
def passkeys(app: App, name: str, gone: str | None, format: str) -> int:
    """The passkeys of the operator NAME. To remove one ends the open sessions of this name.

    The console adds them: pmagent console, page Passkeys, with [console] passkeys = "offered" or "required"."""
    from pmagent.console.auth import operators

    file = _paths(app).operators
    operators.named(file, name)
    if gone is not None:
        operators.remove_passkey(file, name, gone)
    kept = operators.named(file, name).passkeys
    if format == "json":
        app.output.document({"passkeys": [{"id": one.id, "name": one.name, "added": one.added} for one in kept]})
        return 0
    for one in kept:
        app.output.line(f"{one.id[:16]:<18}{one.name}, added {app.output.moment(one.added)}")
    if not kept:
        app.output.line(f"{name} has no passkey")
    return 0


def _tell(app: App, format: str, operator: Operator, what: str, made: str | None) -> None:
    """Show the change, and a generated secret, this once."""
    if format == "json":
        app.output.document(_document(operator) | ({"secret": made} if made is not None else {}))
        return
    app.output.line(Styled("✓", "green"), f" {operator.name} ({operator.role}): {what}")
    if made is not None:
        app.output.line(f"  secret: {made}")
        app.output.note("it is shown this once; hand it over on a safe way")


def _document(operator: Operator) -> dict[str, Any]:
    return {"name": operator.name, "role": operator.role, "has_secret": operator.secret is not None}


def _may(role: Role) -> str:
    return "look and stop, and change nothing else" if role == "view" else "look, approve and control"


def _secret(app: App, *, from_stdin: bool) -> tuple[str, str | None]:
    """The secret, and, if it was made here, that it be shown. Raises BadSecret, BadInput."""
    from pmagent.console.auth.passwords import checked_secret, new_secret

    if not from_stdin:
        made = new_secret()
        return made, made
    return checked_secret(given_secret(app, "the secret, at least 12 characters")), None


def _paths(app: App) -> ConsolePaths:
    """Where the console keeps what it needs. Raises NotFound where this is no workspace."""
    from pmagent.console.paths import ConsolePaths
    from pmagent.workspace.presence import require_workspace

    require_workspace(app.workspace)
    return ConsolePaths(app.layout)


def _entering(app: App, paths: ConsolePaths, name: str) -> Operator:
    """The operator ``name``; who comes first of all is made one. Raises NoSuchOperator, BadOperators, OSError."""
    from pmagent.console.auth import operators

    file: Path = paths.operators
    if operators.read(file):
        return operators.named(file, name)
    try:
        first = operators.add(file, name, "approve", None)
    except operators.NoSuchOperator:  # another command was quicker
        return operators.named(file, name)
    app.output.note(f"there were no operators: {name} is the first, with the role approve (pmagent operators)")
    return first


def _served(app: App) -> Address:
    """Where the daemon's console is, once it is served. Raises DaemonUnreachable."""
    from pmagent.console.address import read
    from pmagent.console.auth.peers import serves
    from pmagent.service.client import DaemonUnreachable, daemon_listens

    layout, paths = app.layout, _paths(app)
    until = time.monotonic() + READY_SECONDS
    while True:
        if not (layout.store.holder().live and daemon_listens(layout)):
            raise DaemonUnreachable("no daemon runs in this workspace, so nobody serves the console", "pmagent up")
        address = read(paths.address)
        if address is not None and serves(address):
            return address
        if not app.resolved.settings.console.enabled:
            raise DaemonUnreachable("the console is switched off", "set enabled = true under [console]")
        if time.monotonic() > until:
            what = "the daemon does not serve its console"
            raise DaemonUnreachable(what, "its own messages say why; pmagent doctor looks closer")
        time.sleep(TRY_SECONDS)
