"""Preparing a database for logs: its schema, the functions that alone write it, and the roles that may call them.

The database's owner does it once, and again for a later release; it needs no right that a log's writer has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.session import Broken, DatabaseRefused, Failed, Session, sessions

STEPS: Final = (
    "schema.sql", "blobs.sql", "lease.sql", "requests.sql", "attempts.sql", "fleet.sql", "line.sql", "token.sql",
    "asked.sql",
)  # fmt: skip
"""The files that lead from each version of the schema to the next."""

VERSION: Final = len(STEPS)
"""The schema that this release needs."""

PREPARE: Final = "pmagent log prepare"

_ROLES: Final = ("pm_owner", "pm_writer", "pm_reader", "pm_worker")
_SECONDS: Final = 60.0


def prepare(
    address: Address, writers: Sequence[str], readers: Sequence[str],
    operators: Mapping[str, str] = MappingProxyType({}), workers: Sequence[str] = (),
) -> bool:
    """Make what is missing, and let the roles ``writers`` and ``readers``, which exist, write and read logs, and
    ``workers`` claim attempts; ``operators``: role -> the operator whose requests a connection of that role makes ("":
    nobody's). Whether the schema was made, or brought up to date, now. Raises Unreachable, DatabaseRefused."""
    for session in sessions(address):
        try:
            members = ("pm_writer", writers), ("pm_reader", readers), ("pm_worker", workers)
            return _prepare(session, members, operators)
        except Failed as failed:
            raise DatabaseRefused(f"{address} cannot be prepared: {failed}", "run it as the owner of the database, "
                                  "with the right to create roles; docs/machines.md") from failed
        except Broken as broken:
            raise PmagentError(f"the connection to {session.host} broke: {broken}", f"{PREPARE} again") from broken
        finally:
            session.close()
    raise AssertionError("sessions raises where there are none")


def _prepare(
    session: Session, members: Sequence[tuple[str, Sequence[str]]], operators: Mapping[str, str]
) -> bool:  # fmt: skip
    found = schema_version(session)
    if found > VERSION:
        raise DatabaseRefused(f"{session.host} has schema {found} of a later pmagent", "use that release")
    statements = ["BEGIN", "SELECT pg_advisory_xact_lock(28781)"]
    there = {name for (name,) in session.ask(b"SELECT rolname::text FROM pg_roles")}
    wanted = [*(name for _, names in members for name in names), *(role for role in operators if operators[role])]
    if missing := sorted({*wanted} - there):
        raise DatabaseRefused(f"{session.host} has no role {', '.join(missing)}", "make it first: CREATE ROLE … LOGIN")
    statements += [f"CREATE ROLE {role} NOLOGIN" for role in _ROLES if role not in there]
    if not _is_superuser(session):
        statements.append("GRANT pm_owner TO CURRENT_USER")
    for group, names in members:
        statements += [_granting(session, group, name) for name in names]
    if found == 0:
        statements.append("CREATE SCHEMA pm AUTHORIZATION pm_owner")
    statements.append("SET LOCAL ROLE pm_owner")
    for name in STEPS[found:]:
        statements.append(Path(__file__).with_name(name).read_text("utf-8").rstrip("; \n"))
    statements += [_naming(session, role, operator) for role, operator in operators.items()]
    session.script(";\n".join((*statements, "COMMIT")), _SECONDS)
    _let_see_standbys(session)
    return found < VERSION


def _let_see_standbys(session: Session) -> None:
    """Let the check of standbys see their state, where whoever prepares may give that right."""
    try:
        session.script("GRANT pg_read_all_stats TO pm_owner")
    except Failed:  # the check then says that it sees nothing
        return


def _granting(session: Session, group: str, name: str) -> str:
    ((quoted,),) = session.ask(b"SELECT quote_ident($1::text)", name)
    return f"GRANT {group} TO {quoted}"


def _naming(session: Session, role: str, operator: str) -> str:
    named = (
        b"SELECT format('DELETE FROM pm.operator WHERE role = %L', $1::text) || CASE $2::text WHEN '' THEN '' ELSE "
        b"format('; INSERT INTO pm.operator VALUES (%L, %L)', $1::text, $2::text) END"
    )
    ((statements,),) = session.ask(named, role, operator)
    return str(statements)


def _is_superuser(session: Session) -> bool:
    ((found,),) = session.ask(b"SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    return bool(found)


def schema_version(session: Session) -> int:
    """The version of the schema that is there; 0: none. Raises Broken, Failed; DatabaseRefused where this role may not
    look at it."""
    ((there,),) = session.ask(b"SELECT to_regclass('pm.version') IS NOT NULL")
    if not there:
        return 0
    ((version,),) = session.ask(b"SELECT max(version) FROM pm.version")
    return int(version or 0)
