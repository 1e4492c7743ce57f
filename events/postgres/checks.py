"""The promises of a server that is trusted with a log, each with what to change (docs/machines.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.events.postgres.schema import PREPARE, VERSION
from pmagent.events.postgres.session import Session
from pmagent.events.store import Fault

SERVER_MIN: Final = 150_000
"""PostgreSQL 15."""


_NAMES: Final = re.compile(r'"[^"]*"|[^\s,()"]+')
_OWNER: Final = b"SELECT pg_has_role(session_user, 'pm_owner', 'MEMBER')"


class Unsafe(PmagentError, exit_code=2):
    """The server would acknowledge what a failure can take back, so no log is written there."""


def faults_of(facts: Mapping[str, str], *, replicated: bool) -> list[Fault]:
    """The faults that ``pm.facts`` tell of. Pure."""
    found = [
        Fault(f"{name} is {facts.get(name, 'unknown')}", mend)
        for name, good, mend in (
            ("fsync", ("on",), "ALTER SYSTEM SET fsync = on, and reload"),
            ("full_page_writes", ("on",), "ALTER SYSTEM SET full_page_writes = on, and reload"),
            ("data_checksums", ("on",), "stop the server and run pg_checksums --enable: damaged pages are found then"),
            ("wal_level", ("replica", "logical"), "ALTER SYSTEM SET wal_level = replica, and restart"),
            ("synchronous_commit", ("on", "remote_apply"), "ALTER ROLE … SET synchronous_commit = on"),
            ("superuser", ("false",), "let a role of its own write the log, with GRANT pm_writer"),
            ("owner", ("false",), "let a role write the log that is no member of pm_owner, which can drop the tables"),
        )
        if facts.get(name) not in good
    ]
    number = facts.get("server_version_num", "0")
    if int(number) < SERVER_MIN:
        found.append(Fault(f"the server has version {int(number) // 10_000}", "PostgreSQL 15 or later is needed"))
    if facts.get("version") != str(VERSION):
        text = f"it has schema {facts.get('version')}, and {VERSION} is needed"
        found.append(Fault(text, f"its owner runs {PREPARE}"))
    if facts.get("wal_sync_method", "").startswith("open_"):
        text = f"wal_sync_method is {facts['wal_sync_method']}, which some disks do not obey"
        found.append(Fault(text, "fdatasync is the default", grave=False))
    if replicated:
        found += _of_replication(facts)
    return found


def _of_replication(facts: Mapping[str, str]) -> list[Fault]:
    names = facts.get("synchronous_standby_names", "")
    one_node = "or say under [storage] that one server is enough: replicated = false"
    if not names:
        text = "synchronous_standby_names is empty: no commit waits for a standby"
        return [Fault(text, f"name the standbys, {one_node}")]
    if "*" in (word.strip('"') for word in _NAMES.findall(names)):
        text = f"synchronous_standby_names is '{names}': whatever connects counts as a standby"
        return [Fault(text, "name the standbys")]
    if facts.get("standbys") == "0":
        if facts.get("unseen", "0") != "0":
            text, mend = "the state of standbys cannot be seen", f"GRANT pg_read_all_stats TO pm_owner, or {PREPARE}"
            return [Fault(text, mend, grave=False)]
        return [Fault("no synchronous standby is connected, so no commit ends", f"start one, {one_node}", grave=False)]
    return []


def faults_in(session: Session, *, replicated: bool) -> list[Fault]:
    """The faults of the server. Raises Broken, Failed."""
    facts = {str(name): str(value) for name, value in session.ask(b"SELECT name, value FROM pm.facts()")}
    ((owner,),) = session.ask(_OWNER)  # a superuser is a member of each role
    facts["owner"] = "true" if owner and facts.get("superuser") == "false" else "false"
    return faults_of(facts, replicated=replicated)


def check_server(session: Session, *, replicated: bool) -> None:
    """Raises Unsafe for a server that no log is written on; Broken, Failed."""
    grave = [fault for fault in faults_in(session, replicated=replicated) if fault.grave]
    if grave:
        raise Unsafe(
            f"the database on {session.host} must not hold a log: {'; '.join(fault.found for fault in grave)}",
            "; ".join(fault.mend for fault in grave),
        )
