"""Blobs in a database, or in S3: who may touch them, and what is said where they cannot be reached."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pmagent.actors.known import blob_check, named_blobs
from pmagent.events import s3
from pmagent.events.blobs import BlobStore
from pmagent.events.copying import copy_log
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.evidence import DatabaseNotAccepted, log_at, log_in
from pmagent.events.far_blobs import BlobNotKept, BlobsUnreachable, FarBlobs
from pmagent.events.postgres import reader as reader_module
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.hold import committed
from pmagent.events.postgres.schema import STEPS, VERSION, prepare, schema_version
from pmagent.events.postgres.session import Session, sessions
from pmagent.events.postgres.store import PostgresLog
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from tests.integration.test_log_copy import fill
from tests.support.commands import clean_environment, invoke, spawn
from tests.support.daemons import running
from tests.support.postgres import READER, WRITER, Proxy, Server, one_server, servers
from tests.support.s3 import Bucket, one_bucket

NO, USAGE, CORRUPT, UNREACHABLE, SECURITY = 1, 2, 4, 5, 7


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    """A bucket of its own."""
    with one_bucket() as made:
        yield made


def blobs_at(bucket: Bucket, cache: Path) -> FarBlobs:
    """The blobs of the bucket."""
    return s3.blobs_in(bucket.place, BlobStore(RealDisk(), str(cache)), lambda: None)


def test_whoever_may_not_write_a_log_stores_and_removes_no_blob_of_it(server: Server, tmp_path: Path) -> None:
    log = PostgresLog(server.new_log(), tmp_path / "a", replicated=False)
    with log.lease("tests"):
        name = log.blobs().put(b"content")
    server.sql("CREATE ROLE stranger LOGIN; GRANT pm_writer TO stranger")
    for role in (READER, "stranger"):
        other = PostgresLog(server.address(log.place.partition("#")[2], role), tmp_path / role, replicated=False)
        assert other.blobs().get(name) == b"content"
        with pytest.raises(BlobNotKept, match="permission denied"):
            other.blobs().put(b"other content")
        with pytest.raises(BlobNotKept, match="permission denied"):
            other.blobs().remove([name])
    for role in (WRITER, READER):
        for text in (
            "DELETE FROM pm.blob", "UPDATE pm.piece SET bytes = ''", "INSERT INTO pm.blob VALUES (1, '', 1, '')",
        ):  # fmt: skip
            with pytest.raises(AssertionError, match="permission denied"):
                server.sql(f"SET ROLE {role}; {text}")


def test_only_the_holder_of_the_lease_removes_blobs(server: Server, tmp_path: Path) -> None:
    address = server.new_log()
    first, second = (PostgresLog(address, tmp_path / name, replicated=False) for name in "ab")
    with first.lease("tests"):
        name = first.blobs().put(b"content" * 100_000)
        blobs = first.blobs()
        with second.lease("tests", seize=True):
            assert second.blobs().put(b"content" * 100_000) == name
            for remove in (lambda: blobs.remove([name]), blobs.clear_unfinished):
                with pytest.raises(PmagentError, match="another holder"):
                    remove()
            assert second.blobs().clear_unfinished() == 0
            assert second.blobs().check(name) == 700_000


def test_pieces_of_a_writer_that_was_killed_are_cleared_away(server: Server, tmp_path: Path) -> None:
    address = server.new_log()
    log = PostgresLog(address, tmp_path / "a", replicated=False)
    with log.lease("tests"):
        kept = log.blobs().put(os.urandom(600_000))
        server.sql(f"SELECT pm.put_piece('{address.log}', 'x', n, 'piece') FROM generate_series(0, 4) n")
        assert log.blobs().clear_unfinished() == 1
        assert log.blobs().clear_unfinished() == 0
        assert log.blobs().check(kept) == 600_000
        with pytest.raises(AssertionError, match="pieces of it are missing"):
            server.sql(f"SELECT pm.put_blob('{address.log}', sha256('y'), 25, 'x', NULL)")


def test_a_blob_that_no_standby_has_is_not_stored(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "OUTAGE_SECONDS", 0)
    address = server.new_log()
    with PostgresLog(address, tmp_path / "a", replicated=False).lease("tests"):
        waiting = PostgresLog(address, tmp_path / "b")
        with pytest.raises(BlobNotKept, match="synchronous_standby_names") as caught:
            waiting.blobs().put(b"content")
        assert isinstance(caught.value, OSError), "an outcome that cannot be kept is unknown, as on a full disk"
        assert caught.value.exit_code == UNREACHABLE


GOLDEN = Path(__file__).resolve().parents[1] / "golden"
"""The schema as it was released first lies there."""


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_its_logs(tmp_path: Path) -> None:
    with servers() as folder:
        server = Server.made(folder / "a")
        try:
            server.prepare()
            log = PostgresLog(server.new_log(), tmp_path / "blobs", replicated=False)
            fill(log)
            end = log.verify().tail
            first = (GOLDEN / "postgres-schema-1.sql").read_text("utf-8")
            server.sql(
                "ALTER SCHEMA pm RENAME TO later; CREATE SCHEMA pm AUTHORIZATION pm_owner; SET ROLE pm_owner;"
                f"{first}; RESET ROLE; SET session_replication_role = replica;"
                "INSERT INTO pm.log OVERRIDING SYSTEM VALUE SELECT log_no, name, log_id, writer, replicated, epoch,"
                "token, origin, holder, since, renewals, released, position, batch, time, sum, settled, moved_to"
                " FROM later.log;"
                "INSERT INTO pm.page SELECT * FROM later.page; INSERT INTO pm.epoch SELECT * FROM later.epoch;"
                "DROP SCHEMA later CASCADE"
            )
            with pytest.raises(PmagentError, match="has schema 1"):
                log.verify()
            assert prepare(server.address(role="postgres"), [], [])
            assert not prepare(server.address(role="postgres"), [], [])
            session = next(sessions(server.address()))
            assert schema_version(session) == VERSION == len(STEPS)
            session.close()
            assert log.verify(decode=True).tail == end
            fill(log, (1,))
            server.sql(f"INSERT INTO pm.version VALUES ({VERSION + 1})")  # a later release was here
            with pytest.raises(PmagentError) as later:
                log.lease("tests").__enter__()
            assert later.value.hint == "use the later release"
        finally:
            server.stop()


def test_a_bucket_that_is_not_reached_is_said_so_and_the_cache_goes_on(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = blobs_at(bucket, tmp_path / "a").put(b"content")
    monkeypatch.setattr(s3, "ATTEMPTS", 1)
    here, elsewhere = blobs_at(bucket, tmp_path / "a"), blobs_at(bucket, tmp_path / "b")
    bucket.stop()
    assert here.get(name) == b"content"
    with pytest.raises(BlobNotKept) as put:
        here.put(b"more")
    for look in (elsewhere.get, elsewhere.check, elsewhere.reader, here.check):
        with pytest.raises(BlobsUnreachable) as caught:
            look(name)
        assert caught.value.exit_code == put.value.exit_code == UNREACHABLE
        assert "s3://blobs" in caught.value.message
        assert "tests-secret" not in caught.value.message
    assert not list((tmp_path / "b").glob("*.tmp")), "nothing is left half-written"


def test_rotten_content_of_the_cache_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    blobs = blobs_at(bucket, tmp_path)
    name = blobs.put(b"content")
    path = tmp_path / name[:2] / name
    for spoil in (lambda: path.write_bytes(b"c0ntent"), path.unlink):
        spoil()
        assert blobs.get(name) == b"content"
        spoil()
        assert b"".join(blobs.reader(name).pieces()) == b"content"
    shutil.rmtree(tmp_path)
    assert blobs.get(name) == path.read_bytes() == b"content"
    bucket.spoil(name)
    assert blobs.get(name) == b"content"
    with pytest.raises(CorruptLog, match="far store"):
        blobs.check(name)


@pytest.mark.parametrize("told", [b"c0ntent", b"cont", b"content and more", b""])
def test_a_store_that_answers_with_other_content_is_not_believed(bucket: Bucket, tmp_path: Path, told: bytes) -> None:
    name = blobs_at(bucket, tmp_path / "a").put(b"content")
    bucket.client.put_object(Bucket=bucket.name, Key=bucket.key(name), Body=told)
    blobs = blobs_at(bucket, tmp_path / "b")
    for look in (blobs.get, blobs.reader, blobs.check):
        with pytest.raises(CorruptLog, match="far store"):
            look(name)
    assert not [path for path in (tmp_path / "b").rglob("*") if path.is_file()], "nothing of it is kept"


@contextmanager
def silent() -> Iterator[str]:
    """The place of a store that takes every call and answers none."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"s3://blobs?endpoint=http://127.0.0.1:{listener.getsockname()[1]}&region=us-east-1"


@pytest.mark.usefixtures("bucket")
def test_a_store_that_says_nothing_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "ATTEMPTS", 2)
    monkeypatch.setattr(s3, "READ_SECONDS", 0.2)
    with silent() as place:
        blobs = s3.blobs_in(place, BlobStore(RealDisk(), str(tmp_path)), lambda: None)
        with pytest.raises(BlobNotKept, match="s3://blobs are not reached"):
            blobs.put(b"content")
        for look in (blobs.get, blobs.reader, blobs.check):
            with pytest.raises(BlobsUnreachable, match="s3://blobs are not reached"):
                look("0" * 64)


def test_a_database_that_says_nothing_is_not_waited_for_without_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "OUTAGE_SECONDS", 0.2)
    monkeypatch.setattr(sessions, "__defaults__", (0.3,))
    for asking in (Session.ask, committed):
        monkeypatch.setattr(asking, "__kwdefaults__", {**(asking.__kwdefaults__ or {}), "seconds": 0.3})
    address, folder = server.new_log(), tmp_path / "proxy"
    folder.mkdir()
    with PostgresLog(address, tmp_path / "a", replicated=False).lease("tests"), closing(Proxy(server, folder)) as proxy:
        behind = Address(f"postgresql:///postgres?host={folder}&user={WRITER}", address.log)
        store, other = (PostgresLog(behind, tmp_path / name, replicated=False).blobs() for name in "bc")
        name = store.put(b"content")
        proxy.silence(1)
        with pytest.raises(BlobNotKept, match="are not reached"):
            store.put(b"more")
        for look in (store.check, other.get):
            with pytest.raises(BlobsUnreachable, match="are not reached"):
                look(name)
        proxy.speak()
        assert (store.check(name), other.get(store.put(b"more"))) == (7, b"more")
        for one in (store, other):
            one._far.close()  # type: ignore[attr-defined]


def test_what_another_puts_first_under_a_name_is_not_replaced(bucket: Bucket, tmp_path: Path) -> None:
    name = blobs_at(bucket, tmp_path / "a").put(b"content")
    bucket.client.put_object(Bucket=bucket.name, Key=bucket.key(name), Body=b"short")
    with pytest.raises(BlobNotKept, match="has 5 bytes"):
        blobs_at(bucket, tmp_path / "b").put(b"content")


@pytest.mark.parametrize(
    "place",
    ["s3:/x", "http://blobs/x", "s3://", "s3://k:secret@blobs/x", "s3://blobs?endpoint=http://example.com",
     "s3://blobs?endpoint=https://k:secret@example.com", "s3://blobs?acl=public", "s3://blobs/x#y", "s3://blobs?x", "s3://[x"],
)  # fmt: skip
def test_a_place_that_cannot_be_used_is_refused_and_no_secret_repeated(place: str) -> None:
    with pytest.raises(s3.BadPlace) as caught:
        s3.parse_place(place)
    assert caught.value.exit_code == USAGE
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_copy_takes_the_blobs_along_to_s3_and_back(server: Server, bucket: Bucket, tmp_path: Path) -> None:
    source, back = log_in(tmp_path / "1" / "log"), log_in(tmp_path / "2" / "log")
    fill(source)
    address = server.new_log()
    there = log_at(str(address), tmp_path / "cache", replicated=False, kept=bucket.place)
    copy_log(source, there, named_blobs())
    shutil.rmtree(tmp_path / "cache")
    found = there.verify(blobs=blob_check(there.blobs())).blobs
    assert found is not None
    assert (found.checked, found.bad) == (6, 0)
    beside = f"SELECT count(*) FROM pm.blob b JOIN pm.log USING (log_no) WHERE name = '{address.log}'"
    assert server.sql(beside) == "0"
    copy_log(there, back, named_blobs())
    kept = back.verify(blobs=blob_check(back.blobs())).blobs
    assert kept is not None
    assert (kept.checked, kept.bad, kept.bytes) == (found.checked, 0, found.bytes)


def settled(workspace: Path, place: str) -> None:
    """Let the workspace's blobs lie at a place, as its configuration says."""
    (workspace / ".pmagent").mkdir(exist_ok=True)
    with (workspace / ".pmagent/config.toml").open("a") as file:
        file.write(f'\n[storage]\nblobs = "{place}"\n')


PLAN = """\
- task_id: list
  intent: List the files
  tools: [ls]
"""


def test_a_workspace_keeps_its_blobs_in_s3_when_its_user_has_accepted_that(workspace: Path, bucket: Bucket) -> None:
    settled(workspace, bucket.place)
    plan = workspace.parent / "plan.yaml"
    plan.write_text(PLAN)
    ran = invoke("run", "list", "--plan", str(plan), environ={"PMAGENT_WORKSPACE": str(workspace)})
    assert ran.code == SECURITY, ran.errors
    assert "Contents" not in bucket.client.list_objects_v2(Bucket=bucket.name)
    accept(workspace)
    with running(workspace):
        ran = spawn("run", "list", "--plan", str(plan), cwd=workspace)
        assert ran.code == 0, ran.errors
    names = {one["Key"].rpartition("/")[2] for one in bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"]}
    cache = workspace / ".pmagent/data/blobs"
    assert names == {path.name for path in cache.glob("??/*")}
    shutil.rmtree(cache)
    assert spawn("log", "verify", cwd=workspace).code == 0
    assert spawn("rebuild", "--check", cwd=workspace).code == 0
    assert spawn("replay", cwd=workspace).code == 0
    found = spawn("doctor", "--format", "json", cwd=workspace).document["checks"]
    assert {check["name"]: check["state"] for check in found}["log"] == "ok"
    bucket.spoil(min(names))
    assert spawn("log", "verify", cwd=workspace).code == CORRUPT


@pytest.mark.usefixtures("bucket")
def test_an_attempt_whose_output_a_silent_store_does_not_keep_has_failed(workspace: Path) -> None:
    plan = workspace.parent / "plan.yaml"
    plan.write_text(PLAN)
    changed = "from pmagent.events import s3\ns3.ATTEMPTS, s3.READ_SECONDS = 1, 0.5"
    with silent() as place:
        settled(workspace, place)
        accept(workspace)
        with running(workspace, changed=changed) as daemon:
            ran = spawn("run", "list", "--plan", str(plan), "--retries", "0", cwd=workspace)
            assert ran.code == NO, ran.errors
            assert daemon.process.poll() is None
            failed = spawn("log", "tail", "-n", "all", "--type", "effect.failed", "--format", "json", cwd=workspace)
            assert failed.text.count("BlobNotKept") == len(failed.lines) == 1
    assert spawn("log", "verify", cwd=workspace).code == 0
    assert spawn("replay", cwd=workspace).code == 0


def test_no_bucket_is_reached_before_this_user_has_accepted_it(workspace: Path, bucket: Bucket) -> None:
    settled(workspace, bucket.place)
    blobs = Layout(workspace).store.blobs()
    with pytest.raises(DatabaseNotAccepted) as caught:
        blobs.check("0" * 64)
    assert caught.value.exit_code == SECURITY
    with pytest.raises(DatabaseNotAccepted):
        blobs.put(b"content")
    accept(workspace)
    assert Layout(workspace).store.blobs().put(b"content")


def test_without_the_extra_one_error_says_what_to_install(workspace: Path, bucket: Bucket) -> None:
    settled(workspace, bucket.place)
    accept(workspace)
    code = "import sys; sys.modules['botocore'] = None; from pmagent.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, "doctor"], cwd=workspace, env=clean_environment(), capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "'pmagent[s3]'" in done.stdout, done.stderr
    assert "Traceback" not in done.stderr


def test_a_blob_that_was_lost_there_is_missing_also_where_the_cache_has_it(bucket: Bucket, tmp_path: Path) -> None:
    blobs = blobs_at(bucket, tmp_path)
    name = blobs.put(b"content")
    bucket.client.delete_object(Bucket=bucket.name, Key=bucket.key(name))
    with pytest.raises(NotFound):
        blobs.check(name)
    blobs_at(bucket, tmp_path).put(b"content")
    assert blobs.check(name) == 7
