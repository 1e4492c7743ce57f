"""A workspace whose log lies in PostgreSQL: every command works on it, and none before its database is accepted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pmagent.events.postgres.store import PostgresLog
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from pmagent.workspace.user_registry import Registry
from tests.support.commands import clean_environment, invoke, pmagent, spawn
from tests.support.daemons import running
from tests.support.effort import by_night
from tests.support.postgres import Server, one_server, programs, run, until, with_rights

NO, USAGE, CORRUPT, UNREACHABLE, SECURITY = 1, 2, 4, 5, 7


@pytest.fixture
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


def settle_in(workspace: Path, address: str) -> None:
    """Name the log in the workspace's configuration, which is accepted then."""
    with (workspace / ".pmagent/config.toml").open("a") as file:
        file.write(f'\n[storage]\nlog = "{address}"\nreplicated = false\n')
    accept(workspace)


@pytest.fixture
def there(workspace: Path, server: Server) -> Path:
    """A workspace with such a log, which has begun."""
    (workspace / ".pmagent").mkdir(exist_ok=True)
    settle_in(workspace, str(server.address("lab")))
    assert spawn("oa", "snapshot", cwd=workspace).code == 0
    return workspace


def test_every_command_that_reads_works_on_it(there: Path) -> None:
    assert not list((there / ".pmagent/data/log").glob("*"))
    assert spawn("log", "tail", "-n", "3", cwd=there).code == 0
    stat = spawn("log", "stat", "--format", "json", cwd=there).document
    assert stat["path"].endswith("#lab")
    assert spawn("log", "verify", cwd=there).code == 0
    assert spawn("replay", cwd=there).code == 0
    assert spawn("rebuild", "--check", cwd=there).code == 0
    assert spawn("log", "why", "4", cwd=there).code == 0
    assert spawn("log", "show", "1", cwd=there).code == 0
    assert spawn("diff", str(there), str(there), cwd=there).code == 0
    exported = spawn("log", "export", cwd=there).out
    assert exported.count(b"\n") == stat["events"]
    status = spawn("status", "--format", "json", cwd=there).document
    assert status["log"]["position"] == stat["events"]
    found = spawn("doctor", "--format", "json", cwd=there).document["checks"]
    checks = {check["name"]: check["state"] for check in found}
    assert (checks["log"], checks["trust"], checks["database"]) == ("ok", "ok", "ok")


def test_a_daemon_serves_it_and_excludes_another_writer(there: Path) -> None:
    with running(there):
        assert spawn("oa", "snapshot", cwd=there).code == 0
        done = spawn("run", "list", "--plan", "-", cwd=there)
        assert done.code == USAGE, "it reads a plan from nobody"
        assert spawn("pause", cwd=there).code == 0
        assert spawn("resume", cwd=there).code == 0
        assert Layout(there).store.holder().live
        assert spawn("log", "adopt", "--yes", cwd=there).code == NO
    assert not Layout(there).store.holder().live
    assert spawn("log", "verify", cwd=there).code == 0
    assert spawn("replay", cwd=there).code == 0


def test_a_daemon_goes_on_when_its_database_was_started_again(there: Path, server: Server) -> None:
    with running(there):
        before = spawn("log", "stat", "--format", "json", cwd=there).document
        server.kill()
        server.start()
        assert spawn("oa", "snapshot", cwd=there).code == 0
        after = spawn("log", "stat", "--format", "json", cwd=there).document
        assert (after["log_id"], after["events"] > before["events"]) == (before["log_id"], True)
    assert spawn("log", "verify", "--decode", cwd=there).code == 0
    assert spawn("replay", cwd=there).code == 0


def test_no_database_is_reached_before_this_user_has_accepted_it(workspace: Path, server: Server) -> None:
    (workspace / ".pmagent").mkdir(exist_ok=True)
    text = f'[storage]\nlog = "{server.address("lab")}"\nreplicated = false\n'
    (workspace / ".pmagent/config.toml").write_text(text)
    environ = {"PMAGENT_WORKSPACE": str(workspace)}
    connected = server.sql("SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'")
    for command in (("log", "tail"), ("log", "verify"), ("status",), ("oa", "snapshot"), ("rebuild", "--check")):
        ran = invoke(*command, environ=environ)
        assert ran.code == SECURITY, (command, ran.errors)
        assert "accepted" in ran.errors
    assert server.sql("SELECT usename FROM pg_stat_activity WHERE usename = 'lab'") == ""
    assert int(server.sql("SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'")) - int(connected) <= 2
    accept(workspace)
    assert invoke("status", environ=environ).code == 0
    (workspace / ".pmagent/config.toml").write_text(text.replace("#lab", "#other"))
    assert invoke("log", "tail", environ=environ).code == SECURITY, "another log is another power"


def test_an_address_that_cannot_be_used_is_refused_and_no_other_log_begun(workspace: Path) -> None:
    (workspace / ".pmagent").mkdir(exist_ok=True)
    for value, word in (('"postgresql://eve:secret@db/x#lab"', "password"), ('"db/x"', "begin with"), ("7", "")):
        (workspace / ".pmagent/config.toml").write_text(f"[storage]\nlog = {value}\n")
        for command in (("log", "tail"), ("oa", "snapshot")):
            ran = pmagent(workspace, *command)
            assert ran.code == USAGE, (value, command, ran.errors)
            assert word in ran.errors
            assert "secret" not in ran.errors
    assert not (workspace / ".pmagent/data/log/HEAD").exists()


def test_without_the_extra_one_error_says_what_to_install(there: Path) -> None:
    code = "import sys; sys.modules['psycopg'] = None; from pmagent.cli.app import run; sys.exit(run(sys.argv[1:]))"
    for command in (["log", "tail"], ["oa", "snapshot"], ["log", "prepare", "postgresql:///x"]):
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, *command], cwd=there, env=clean_environment(), capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == USAGE, done.stderr
        assert "'pmagent[pg]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_database_that_is_down_is_said_so(there: Path, server: Server) -> None:
    server.kill()
    for command in (("log", "verify"), ("oa", "snapshot")):
        ran = spawn(*command, cwd=there)
        assert ran.code == UNREACHABLE, ran.errors
        assert str(server.folder) in ran.errors


def test_a_log_that_was_moved_is_known_in_its_new_place(workspace: Path, server: Server) -> None:
    assert spawn("boot", "oa", cwd=workspace).code == 0
    address = str(server.address("lab"))
    assert spawn("log", "copy", ".", address, "--one-server", cwd=workspace).code == 0
    refused = spawn("oa", "snapshot", cwd=workspace)
    assert (refused.code, address in refused.errors) == (NO, True)
    settle_in(workspace, address)
    assert spawn("oa", "snapshot", cwd=workspace).code == 0, "neither a stranger nor ended"
    assert "sessions   1" in spawn("status", cwd=workspace).text
    back = workspace.parent / "back"
    assert spawn("log", "copy", address, str(back), "--one-server", cwd=workspace).code == 0
    assert spawn("log", "verify", str(back / "log"), cwd=workspace).code == 0
    assert spawn("oa", "snapshot", cwd=workspace).code == NO


def restored(server: Server, backup: Path) -> None:
    """Put the data of ``backup`` into the server's place."""
    server.stop()
    shutil.rmtree(server.data)
    subprocess.run(["cp", "-a", str(backup), str(server.data)], check=True)
    server.start()


def saved(server: Server) -> Path:
    """A copy of the server's data as they are now."""
    server.stop()
    backup = server.folder / "backup"
    subprocess.run(["cp", "-a", str(server.data), str(backup)], check=True)
    server.start()
    return backup


def test_a_restored_backup_is_found_and_nothing_starts_until_that_is_accepted(there: Path, server: Server) -> None:
    backup = saved(server)
    assert spawn("boot", "oa", cwd=there).code == 0
    known = Registry().log_of(there)
    assert known is not None
    restored(server, backup)
    for command in (("oa", "snapshot"), ("log", "verify")):
        ran = spawn(*command, cwd=there)
        assert ran.code == CORRUPT, ran.errors
    refused = spawn("oa", "snapshot", cwd=there)
    assert f"to {known.position} were here and are gone" in refused.errors
    assert "pmagent log accept-restore" in refused.errors
    assert PostgresLog(server.address("lab"), there, replicated=False).verify().ok, "by itself it is whole"
    accepted = spawn("log", "accept-restore", "--yes", "--format", "json", cwd=there)
    assert accepted.code == 0, accepted.errors
    assert accepted.document["gone_to"] == known.position
    shown = json.loads((there / "share/orchestrator_assistant/STATE.json").read_text())
    newest = Layout(there).store.stat().newest
    assert newest is not None
    assert shown["log"]["position"] <= newest.position, "no document is of what is gone"
    assert spawn("rebuild", "--check", cwd=there).code == 0
    assert spawn("oa", "snapshot", cwd=there).code == 0
    assert spawn("log", "accept-restore", "--yes", cwd=there).code == NO
    tail = spawn("log", "tail", "--type", "control.*", "--format", "json", cwd=there).text
    assert '"known_sum"' in tail


def recovered(server: Server, archive: Path, base: Path, lsn: str) -> None:
    """Put ``base`` in the place of the server's data, and have it replay the archive up to ``lsn``."""
    server.stop()
    server.data.rename(server.folder / "old")
    base.rename(server.data)
    server.configure(
        restore_command=f"cp {archive}/%f %p", recovery_target_lsn=lsn, recovery_target_action="promote"
    )  # fmt: skip
    (server.data / "recovery.signal").touch()
    server.start()
    until(lambda: server.sql("SELECT pg_is_in_recovery()") == "f", "it is the primary again")


@by_night
def test_what_lies_behind_a_recovery_to_a_point_in_time_is_found_gone(there: Path, server: Server) -> None:
    archive, base = server.folder / "archive", server.folder / "base"
    archive.mkdir()
    if os.getuid() == 0:
        shutil.chown(archive, "postgres")
    server.configure(archive_mode="on", archive_command=f"cp %p {archive}/%f")
    server.stop()
    server.start()
    run("pg_basebackup", "-D", base, "-h", server.folder, "-U", "postgres", "-c", "fast", "--no-sync")
    assert spawn("boot", "oa", cwd=there).code == 0
    kept, lsn = Registry().log_of(there), server.sql("SELECT pg_current_wal_insert_lsn()")
    assert spawn("oa", "snapshot", cwd=there).code == 0
    known = Registry().log_of(there)
    assert kept is not None
    assert known is not None
    segment = server.sql("SELECT pg_walfile_name(pg_switch_wal())")
    until(lambda: server.sql("SELECT last_archived_wal FROM pg_stat_archiver") == segment, "it is archived")
    recovered(server, archive, base, lsn)
    refused = spawn("oa", "snapshot", cwd=there)
    assert (refused.code, f"events {kept.position + 1} to {known.position} " in refused.errors) == (CORRUPT, True)
    assert spawn("log", "accept-restore", "--yes", cwd=there).code == 0
    assert spawn("oa", "snapshot", cwd=there).code == 0
    for command in (("log", "verify"), ("replay",), ("rebuild", "--check")):
        assert spawn(*command, cwd=there).code == 0, command


def test_an_older_server_that_has_all_events_is_found_by_its_age(there: Path, server: Server) -> None:
    backup = saved(server)
    with Layout(there).store.lease("tests") as lease:
        lease.open().close()
    known = Registry().log_of(there)
    assert known is not None
    Registry().note(there, msgspec.structs.replace(known, epoch=Layout(there).store.age()[0]))
    assert spawn("log", "verify", cwd=there).code == 0
    restored(server, backup)
    refused = spawn("oa", "snapshot", cwd=there)
    assert refused.code == CORRUPT
    assert "is older than the log that was here" in refused.errors
    assert spawn("log", "accept-restore", "--yes", cwd=there).code == 0
    assert spawn("oa", "snapshot", cwd=there).code == 0


def upgraded(server: Server) -> None:
    """Put the server's data into a new cluster, as an upgrade to another release does."""
    run("pg_ctl", "-D", server.data, "-m", "fast", "-w", "stop")
    new, old = server.folder / "new", server.folder / "old"
    run("initdb", "-D", new, "-U", "postgres", "-A", "trust", "--data-checksums", "--no-sync", "-E", "UTF8")
    command = ("pg_upgrade", "-d", server.data, "-D", new, "-B", programs(), "-U", "postgres", "-s", server.folder)
    subprocess.run(
        with_rights((*command, "-b", programs())), cwd=server.folder, check=True, capture_output=True, timeout=600
    )
    server.data.rename(old)
    new.rename(server.data)
    server.configure()
    server.start()


@by_night
def test_a_log_whose_server_was_upgraded_is_adopted_and_goes_on(there: Path, server: Server) -> None:
    assert spawn("boot", "oa", cwd=there).code == 0
    before = spawn("log", "stat", "--format", "json", cwd=there).document
    system = server.sql("SELECT system_identifier FROM pg_control_system()")
    upgraded(server)
    assert server.sql("SELECT system_identifier FROM pg_control_system()") != system
    refused = spawn("oa", "snapshot", cwd=there)
    assert refused.code == SECURITY, "by what the server says of itself it is another one"
    assert "pmagent log adopt" in refused.errors
    assert spawn("log", "adopt", "--yes", cwd=there).code == 0
    assert spawn("oa", "snapshot", cwd=there).code == 0
    after = spawn("log", "stat", "--format", "json", cwd=there).document
    assert (after["log_id"], after["events"] > before["events"]) == (before["log_id"], True)
    for command in (("log", "verify"), ("replay",), ("rebuild", "--check")):
        assert spawn(*command, cwd=there).code == 0, command
