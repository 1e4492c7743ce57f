"""Addresses of logs in PostgreSQL hold no password, and what a server must promise is one line each."""

from __future__ import annotations

import pytest

from pmagent.events.errors import PmagentError
from pmagent.events.postgres.address import EXAMPLE, BadAddress, parse_address
from pmagent.events.postgres.checks import faults_of
from pmagent.events.postgres.schema import VERSION
from pmagent.events.postgres.session import targets

GOOD = {
    "fsync": "on", "full_page_writes": "on", "data_checksums": "on", "wal_level": "replica", "version": str(VERSION),
    "synchronous_commit": "on", "synchronous_standby_names": "ANY 1 (b, c)", "server_version_num": "150020",
    "wal_sync_method": "fdatasync", "superuser": "false", "owner": "false", "standbys": "2", "unseen": "0",
}  # fmt: skip


def test_an_address_names_a_database_and_a_log() -> None:
    address = parse_address(f" {EXAMPLE} ")
    assert address == ("postgresql://db1,db2,db3/pmagent?sslmode=verify-full", "lab")
    assert str(address) == EXAMPLE
    assert str(parse_address("postgres:///x?service=lab", of_log=False)) == "postgres:///x?service=lab"


def test_an_address_with_a_password_is_refused_and_the_refusal_does_not_repeat_it() -> None:
    for text in (
        "postgresql://eve:s3cret@db/x#lab", "postgresql://eve:s3cret@a:5432,b:5433/x#lab",
        "postgresql://db/x?password=s3cret#lab", "postgresql://db/x?sslmode=require&sslpassword=s3cret#lab",
    ):
        with pytest.raises(BadAddress, match="holds a password") as caught:
            parse_address(text)
        assert "s3cret" not in f"{caught.value.message}{caught.value.hint}"
        assert caught.value.exit_code == 2


def test_an_address_that_names_no_log_or_no_database_is_refused() -> None:
    for text in (
        "postgresql://db/x", "postgresql://db/x#", "postgresql://db/x#Lab", "postgresql://db/x#a/b",
        f"postgresql://db/x#{'a' * 64}", "mysql://db/x#lab", "/var/log", "postgresql://[db/x#lab",
    ):
        with pytest.raises(BadAddress):
            parse_address(text)
    with pytest.raises(BadAddress, match="wanted"):
        parse_address("postgresql://db/x#lab", of_log=False)


def test_hosts_are_tried_one_by_one_and_none_for_being_read_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    found = targets(parse_address("postgresql://eve@a:1,b:2/x?target_session_attrs=read-write#lab"))
    assert [name for name, _ in found] == ["a:1", "b:2"]
    assert all("target_session_attrs" not in words for _, words in found)
    assert "host='b'" in found[1][1]
    assert "port='2'" in found[1][1]
    assert [name for name, _ in targets(parse_address("postgresql://a,b/x#lab"))] == ["a", "b"]
    monkeypatch.setenv("PGHOST", "c,d")
    assert [name for name, _ in targets(parse_address("postgresql:///x#lab"))] == ["c", "d"]
    with pytest.raises(PmagentError, match="not understood"):
        targets(parse_address("postgresql://a/x?nonsense=1#lab"))


def test_a_server_that_keeps_its_promises_has_no_fault() -> None:
    assert faults_of(GOOD, replicated=True) == []
    assert faults_of(GOOD | {"synchronous_standby_names": "", "standbys": "0"}, replicated=False) == []


def test_each_setting_that_breaks_the_promise_is_a_fault_with_its_mend() -> None:
    for name, value in (
        ("fsync", "off"), ("full_page_writes", "off"), ("data_checksums", "off"), ("wal_level", "minimal"),
        ("synchronous_commit", "off"), ("synchronous_commit", "remote_write"), ("synchronous_commit", "local"),
        ("synchronous_standby_names", ""), ("synchronous_standby_names", " * "), ("superuser", "true"),
        ("synchronous_standby_names", "ANY 1 (*)"), ("synchronous_standby_names", 'FIRST 2 (db2,"*")'),
        ("owner", "true"),
        ("server_version_num", "140010"), ("version", "99"),
    ):
        (fault,) = faults_of(GOOD | {name: value}, replicated=True)
        assert (fault.grave, bool(fault.mend)) == (True, True)
        assert name in fault.found or "version" in fault.found or "schema" in fault.found


def test_what_only_may_be_wrong_is_warned_of() -> None:
    for change in ({"wal_sync_method": "open_datasync"}, {"standbys": "0"}, {"standbys": "0", "unseen": "2"}):
        (fault,) = faults_of(GOOD | change, replicated=True)
        assert not fault.grave
