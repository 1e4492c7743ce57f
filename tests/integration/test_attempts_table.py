"""The table of attempts in PostgreSQL: each step happens once, under the right epoch, and by the right role."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pmagent.events.attempts import HolderTable, Letter, Offering, TableRefused, TableUnreachable, WorkerTable
from pmagent.events.evidence import worker_table
from pmagent.events.postgres.store import PostgresLog
from tests.support.postgres import READER, SECONDS, WRITER, Server, one_server, until
from tests.support.workers import HANDS, joined


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where two roles of workers may claim."""
    with one_server() as made:
        joined(made)
        made.sql("CREATE ROLE others LOGIN; GRANT pm_worker TO others")
        yield made


@pytest.fixture
def store(server: Server, tmp_path: Path) -> PostgresLog:
    """A log."""
    return PostgresLog(server.new_log(), tmp_path, replicated=False)


@pytest.fixture
def held(store: PostgresLog) -> Iterator[HolderTable]:
    """Its table, as its holder sees it."""
    with store.lease("tests"):
        yield store.attempts()


def name_of(store: PostgresLog) -> str:
    """Its name in the database."""
    return store.place.partition("#")[2]


@pytest.fixture
def worker(server: Server) -> Iterator[WorkerTable]:
    """The table as a worker sees it."""
    with closing(worker_table(str(server.address(role=HANDS)), replicated=False)) as table:
        yield table


def offered(labels: tuple[str, ...] = (), seconds: float = 60, size: int = 1000) -> Offering:
    """An attempt."""
    return Offering(labels, b"wish", (), size, 30_000, seconds)


def states(held: HolderTable) -> list[tuple[str, int]]:
    """State and epoch of each row."""
    return [(row.state, row.epoch) for row in held.rows() or []]


def test_of_many_that_claim_at_once_each_gets_another_attempt(
    server: Server, store: PostgresLog, held: HolderTable
) -> None:
    for position in range(1, 21):
        held.offer(position, offered())
    found: list[int] = []
    begin = threading.Barrier(8)

    def claim(number: int) -> None:
        with closing(worker_table(str(server.address(role=HANDS)), replicated=False)) as table:
            begin.wait(SECONDS)
            n = 0
            while (claimed := table.claim(f"claim-{number}-{n}", "w", (), [name_of(store)])) is not None:
                found.append(claimed.position)
                n += 1

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(found) == list(range(1, 21))


def test_a_claim_is_kept_told_once_and_told_again(store: PostgresLog, held: HolderTable, worker: WorkerTable) -> None:
    held.offer(7, offered())
    held.offer(7, offered(("other",)))
    claimed = worker.claim("mine", "w", ["more"], [name_of(store)])
    assert claimed is not None
    assert (claimed.log, claimed.position, claimed.wish, claimed.lease_ms) == (name_of(store), 7, b"wish", 30_000)
    kept = worker.keep("mine")
    assert kept is not None
    assert (kept.renewals, kept.stop) == (1, False)
    assert not held.step(7, "lose", "mine", 0), "it was renewed since"
    assert not held.step(7, "withdraw")
    assert held.step(7, "stop")
    assert (worker.keep("mine") or kept).stop
    assert worker.report("mine", b"first") == worker.report("mine", b"second") == "done"
    assert [row.result for row in held.rows() or []] == [b"first"]
    assert not held.step(7, "lose", "mine", 2)
    assert worker.keep("mine") is None
    assert held.step(7, "forget")
    assert worker.report("mine", b"third") == ""


def test_what_is_lost_takes_no_report(store: PostgresLog, held: HolderTable, worker: WorkerTable) -> None:
    held.offer(1, offered())
    assert worker.claim("late", "w", (), [name_of(store)]) is not None
    assert held.step(1, "lose", "late", 0)
    assert held.step(1, "lose", "late", 0), "also where the answer was lost"
    assert worker.report("late", b"result") == "lost"
    assert not worker.put("late", 0, 0, b"output")
    assert worker.keep("late") is None
    assert states(held)[0][0] == "lost"


def test_nobody_claims_what_was_withdrawn_held_or_is_of_an_earlier_epoch(
    store: PostgresLog, held: HolderTable, worker: WorkerTable, server: Server, tmp_path: Path
) -> None:
    logs = [name_of(store)]
    held.offer(1, offered())
    assert held.step(1, "withdraw")
    assert held.step(2, "withdraw"), "an offer that is still on its way is not taken"
    held.offer(2, offered())
    held.offer(3, offered())
    assert held.step(3, "hold")
    held.offer(4, offered(("gpu",)))
    held.offer(5, offered(seconds=-1))
    assert worker.claim("a", "w", (), logs) is None
    assert worker.claim("b", "w", ["gpu"], ["another"]) is None
    assert held.step(3, "adopt")
    claimed = worker.claim("c", "w", ["linux", "gpu"], logs)
    assert claimed is not None
    assert claimed.position == 3
    other = PostgresLog(server.address(name_of(store)), tmp_path / "other", replicated=False)
    with other.lease("tests", seize=True):
        theirs = other.attempts()
        assert worker.claim("d", "w", ["gpu"], logs) is None, "the epoch was raised"
        assert held.rows() is None
        late = lambda: held.offer(9, offered()), lambda: held.step(4, "adopt"), lambda: held.load("00" * 32, b"x")
        for step in late:
            with pytest.raises(TableUnreachable, match="another holder"):
                step()
        assert worker.report("c", b"done") == "done", "what runs goes on"
        assert theirs.step(4, "adopt")
        assert worker.claim("e", "w", ["gpu"], logs) is not None


def test_a_role_of_workers_sees_and_does_nothing_but_with_its_own_claims(
    server: Server, store: PostgresLog, held: HolderTable, worker: WorkerTable
) -> None:
    held.load("11" * 32, b"x" * 600_000)
    held.offer(1, Offering((), b"wish", ["11" * 32], 1000, 30_000, 60))
    assert worker.claim("known", "w", (), [name_of(store)]) is not None
    assert b"".join(worker.load("known", "11" * 32)) == b"x" * 600_000
    assert worker.put("known", 0, 0, b"y" * 600)
    assert not worker.put("known", 0, 1, b"y" * 600), "more than it may write"
    with closing(worker_table(str(server.address(role="others")), replicated=False)) as other:
        assert other.keep("known") is None
        assert other.report("known", b"forged") == ""
        assert not other.put("known", 0, 2, b"forged")
        assert list(other.load("known", "11" * 32)) == []
        assert list(other.load("", "11" * 32)) == []
    assert b"".join(held.output(1, 0)) == b"y" * 600
    for role in (HANDS, READER):
        for text in (
            "SELECT * FROM pm.attempt", "UPDATE pm.attempt SET state = 'done'", "SELECT * FROM pm.output",
            "SELECT * FROM pm.load", "DELETE FROM pm.worker", "SELECT pm.offer('x', 1, 1, '{}', '', '', 1, 1, 1)",
            "SELECT pm.step('x', 1, 1, 'lose', '', 0)", "SELECT pm.put_load('x', 1, '', 1, '')",
        ):
            with pytest.raises(AssertionError, match="permission denied"):
                server.sql(f"SET ROLE {role}; {text}")
    for text in (
        "SELECT * FROM pm.page", "SELECT * FROM pm.log", "SELECT pm.tell(1, 1, 1, false)", "SELECT * FROM pm.blob",
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="permission denied"):
            server.sql(f"SET ROLE {HANDS}; {text}")
    for text in (
        "SELECT pm.claim('x', 'w', '{}', '{}')", "SELECT pm.report('known', '')", "UPDATE pm.attempt SET epoch = 0",
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="permission denied"):
            server.sql(f"SET ROLE {WRITER}; {text}")


@pytest.mark.usefixtures("held")
def test_a_writer_of_another_log_takes_no_step_and_a_superuser_is_no_worker(server: Server, store: PostgresLog) -> None:
    server.sql("CREATE ROLE elsewhere LOGIN; GRANT pm_writer TO elsewhere")
    with pytest.raises(AssertionError, match="permission denied"):
        server.sql(f"SET SESSION AUTHORIZATION elsewhere; SELECT pm.step('{name_of(store)}', 1, 1, 'withdraw', '', 0)")
    with closing(worker_table(str(server.address(role="postgres")), replicated=False)) as table:
        with pytest.raises(Exception, match="superuser") as caught:
            table.check()
        assert getattr(caught.value, "exit_code", 0) == 2
    reading, demanding = (
        worker_table(str(server.address(role=role)), replicated=role == HANDS) for role in (READER, HANDS)
    )
    with closing(reading):
        with pytest.raises(TableRefused):
            reading.claim("x", "w", (), [name_of(store)])
        with pytest.raises(TableRefused, match="claim no attempts"):
            reading.check()
    with closing(demanding), pytest.raises(Exception, match="synchronous_standby_names"):
        demanding.check()


def test_the_line_to_a_device_is_that_of_one_worker_and_of_one_holder(
    server: Server, store: PostgresLog, held: HolderTable, worker: WorkerTable
) -> None:
    name, letter = name_of(store), Letter(1, 0, b"to the device", 0)
    with closing(worker_table(str(server.address(role="others")), replicated=False)) as stranger:
        assert held.begin_line("first", HANDS, "bench")
        assert stranger.claim_line("theirs", "bench", [name]) is None, "another role with the same name"
        assert worker.claim_line("mine", "else", [name]) is None
        assert worker.claim_line("mine", "bench", ["another"]) is None
        assert worker.claim_line("mine", "bench", [name]) == name
        assert worker.claim_line("twin", "bench", [name]) is None, "another worker of the same role and name"
        assert held.hold_line("first", letter) == Letter(0, 0, b"", 0)
        assert stranger.carry_line("mine", letter) is None, "whoever knows the claim is not who made it"
        assert worker.carry_line("mine", Letter(7, 0, b"from it", 13, "why")) == letter
        assert held.hold_line("first", letter) == Letter(7, 0, b"from it", 13, "why")
        assert server.sql("SET ROLE hands; SELECT has_table_privilege('pm.line', 'SELECT')") == "f"
    assert held.begin_line("second", HANDS, "bench")
    assert worker.carry_line("mine", letter) is None, "that life is over"
    assert held.hold_line("first", letter) is None
    assert worker.claim_line("again", "bench", [name]) == name
    server.sql(f"UPDATE pm.log SET epoch = epoch + 1 WHERE name = '{name}'")
    assert worker.carry_line("again", letter) is None, "another holder has the log"
    assert held.hold_line("second", letter) is None
    assert not held.begin_line("third", HANDS, "bench")


def test_letters_of_a_line_reach_no_standby(server: Server) -> None:
    assert server.sql("SELECT relpersistence FROM pg_class WHERE oid = 'pm.line'::regclass") == "u"


def test_a_table_that_was_let_go_of_makes_no_connection_any_more(server: Server, store: PostgresLog) -> None:
    connections = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{HANDS}'"
    table = worker_table(str(server.address(role=HANDS)), replicated=False)
    table.claim_line("mine", "bench", [name_of(store)])
    before = int(server.sql(connections))
    table.close()
    with pytest.raises(TableUnreachable, match="let go of"):
        table.claim_line("mine", "bench", [name_of(store)])
    until(lambda: int(server.sql(connections)) == before - 1, "its connection is gone")
