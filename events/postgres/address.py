"""The address of a log in PostgreSQL: ``postgresql://HOST,HOST/DATABASE#LOG``.

Everything before ``#`` is libpq's; the part behind it names one log of the database. An address stands in
configuration files, process lists and messages, so it holds no password.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pmagent.events.errors import PmagentError
from pmagent.events.store import is_address

EXAMPLE: Final = "postgresql://db1,db2,db3/pmagent?sslmode=verify-full#lab"

_LOG: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_SECRET: Final = frozenset(("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"))


class BadAddress(PmagentError, exit_code=2):
    """The address of a log cannot be used as it is."""


class Address(NamedTuple):
    """``dsn``: what libpq is given; ``log``: the log's name in that database ("": of no log)."""

    dsn: str
    log: str

    def __str__(self) -> str:
        return f"{self.dsn}#{self.log}" if self.log else self.dsn


def parse_address(text: str, *, of_log: bool = True) -> Address:
    """The address in ``text``; ``of_log``: that of one log, else of a database alone. Raises BadAddress, whose text
    repeats nothing of an address that may hold a password."""
    dsn, _, log = text.strip().partition("#")
    try:
        parts = urlsplit(dsn)
        names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        raise BadAddress("the address of the log is no URL", f"write it as {EXAMPLE}") from None
    if not is_address(dsn) or "\0" in dsn:
        raise BadAddress("the address of the log does not begin with postgresql://", f"write it as {EXAMPLE}")
    if ":" in parts.netloc.rpartition("@")[0] or names & _SECRET:
        raise BadAddress(
            "the address of the log holds a password, which everybody would read who reads the configuration",
            "take it out, and give it in the file that PGPASSFILE names, in a service file, or as PGPASSWORD",
        )
    if of_log and not _LOG.fullmatch(log):
        given = f"names no log ({unquote(log)[:80]!r})" if log else "names no log"
        raise BadAddress(
            f"{dsn} {given}", f"put its name behind the address: {EXAMPLE} (a-z, 0-9, '.', '_' and '-'; 63 at most)"
        )
    if not of_log and log:
        raise BadAddress(f"{text} names the log {log}; a database is wanted here", f"leave #{log} out")
    return Address(dsn, log)
