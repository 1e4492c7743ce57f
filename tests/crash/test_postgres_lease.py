"""The lease of a log in PostgreSQL: whoever does not have it live does nothing outwardly, however it was stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from time import monotonic

import anyio
import anyio.lowlevel
import pytest

from pmagent.actors.core.actor import Performers
from pmagent.core import Event, Io, live
from pmagent.events.errors import GaveUp
from pmagent.events.event import LogTakenOver
from pmagent.events.postgres import hold as hold_module
from pmagent.events.postgres import lease as lease_module
from pmagent.events.postgres import storage as storage_module
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import events
from pmagent.events.storage import Storage
from tests.crash.lease_holder import Again, Asked, Attended, Boss, Done, Kind, Once, Where, hold, note, stop_at
from tests.support.effort import NIGHT, by_night, some
from tests.support.forked import KILLED, Fork
from tests.support.logs import BatchWriter, draft
from tests.support.postgres import SECONDS, Server, cluster, one_server, until

LEASE_MS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose logs have short leases."""
    with one_server() as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}")
        yield made


@pytest.fixture
def log(server: Server, tmp_path: Path) -> PostgresLog:
    """A log that is not there."""
    return PostgresLog(server.new_log(), tmp_path, replicated=False)


@pytest.fixture
def forked() -> Iterator[Callable[[Callable[[int], None]], Fork]]:
    """Makes children, which do not outlive the test."""
    made: list[Fork] = []

    def make(act: Callable[[int], None]) -> Fork:
        made.append(Fork(act))
        return made[-1]

    yield make
    for one in made:
        with suppress(ChildProcessError):  # it has ended, and its number may be another's
            os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(one.pid, signal.SIGKILL)


class Following:
    """A standby that folds nothing; ``over``: it is to give up."""

    over = False

    def follow(self) -> int | None:
        """It is at the beginning."""
        return None if self.over else 0


def wait_live(storage: Storage) -> None:
    """Until effects may start."""
    assert storage.lease is not None
    end = monotonic() + SECONDS
    while not storage.lease.live():
        storage.lease.changes()
        storage.settle()  # which takes its time
        assert monotonic() < end


def stopped(pid: int) -> None:
    """Wait until a child has stopped."""
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])


def acted(acts: Path) -> list[str]:
    """Whose acts there are, in their order."""
    return [line.split()[0] for line in acts.read_text().splitlines()]


PLACES: list[Where] = ["before", "after", "sending", "waiting", "answered"]


@pytest.mark.parametrize("where", PLACES if NIGHT else ["before", "after", "waiting"])
@pytest.mark.parametrize("number", [1, 2, 5] if NIGHT else [2])
def test_a_holder_stopped_beside_a_check_of_its_lease_or_an_append_starts_nothing_beside_the_next_one(
    log: PostgresLog, tmp_path: Path, forked: Callable[[Callable[[int], None]], Fork], where: Where, number: int
) -> None:
    acts = tmp_path / "acts"
    acts.touch()

    def run(out: int) -> None:
        stop_at(where, number)
        hold(log.place, acts, "once", out)

    old = forked(run)
    stopped(old.pid)
    with log.lease("others", standby=Following()) as lease, closing(lease.open()) as storage:
        writer = BatchWriter(storage)
        if not storage.tail().position:
            writer.create(storage.log_id())
        writer.write([draft(1)])  # at once
        wait_live(storage)
        note(acts, "next")
        os.kill(old.pid, signal.SIGCONT)
        code, _ = old.end()
        writer.write([draft(2)])
        note(acts, "next")
    assert code != 0
    assert code == KILLED or where != "after", "nobody would have kept it from the start"
    assert acted(acts)[-2:] == ["next", "next"], "it acted beside its successor"
    assert log.verify(decode=True).ok


@pytest.mark.parametrize("where", some(PLACES, 2))
def test_a_holder_stopped_for_less_than_its_lease_goes_on_and_nobody_takes_over(
    log: PostgresLog, server: Server, tmp_path: Path, forked: Callable[[Callable[[int], None]], Fork], where: Where
) -> None:
    acts, name = tmp_path / "acts", log.place.partition("#")[2]
    acts.touch()
    with log.lease("first") as lease, closing(lease.open()) as storage:
        BatchWriter(storage).create(storage.log_id())
    server.sql(f"UPDATE pm.log SET lease_ms = 60000 WHERE name = '{name}'")

    def run(out: int) -> None:
        stop_at(where, 3)
        hold(log.place, acts, "once", out)

    old = forked(run)
    stopped(old.pid)
    standby, found = Following(), list[LogTakenOver | None]()
    taking = threading.Thread(target=_take_after, args=(log, found, standby))
    taking.start()
    try:
        until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
        silent = f"SELECT renewed < now() - interval '2 seconds' FROM pm.log WHERE name = '{name}'"
        until(lambda: server.sql(silent) == "t", "the holder has been silent for a while")
        epoch, before = log.age()[0], len(acted(acts))
        os.kill(old.pid, signal.SIGCONT)
        until(lambda: len(acted(acts)) > before + 3, "it acts on")
    finally:
        standby.over = True
        taking.join(SECONDS)
    old.kill(0)
    old.end()
    assert (found, log.age()[0]) == ([], epoch)
    lines = acts.read_text().splitlines()
    assert [int(line.split()[0]) for line in lines] == [old.pid] * len(lines)
    positions = [line.split()[1] for line in lines]
    assert len(positions) == len(set(positions)), "nothing was done twice"
    assert log.verify(decode=True).ok


@by_night
def test_what_runs_ends_with_the_lease_of_a_holder_that_is_stopped(
    log: PostgresLog, tmp_path: Path, forked: Callable[[Callable[[int], None]], Fork]
) -> None:
    acts = tmp_path / "acts"
    acts.touch()
    old = forked(lambda out: hold(log.place, acts, "once", out, on=True))
    assert old.has_reported(1)
    until(lambda: acts.stat().st_size > 0, "it acts")
    os.kill(old.pid, signal.SIGSTOP)
    stopped(old.pid)
    with log.lease("others", standby=Following()) as lease, closing(lease.open()) as storage:
        wait_live(storage)
        size = acts.stat().st_size
        code, _ = old.end()
        assert code == KILLED
        note(acts, "next")
        assert acts.read_text()[size:].split()[0] == "next", "its process acted on"


def types_of(log: PostgresLog) -> list[str]:
    """The types of its events."""
    with closing(log.reader()) as reader:
        return [event.type for event in events(reader)]


class Acting:
    """A performer that acts until it is ended, or for a moment."""

    def __init__(self, *, on: bool) -> None:
        self.count = 0
        self.began, self.over = anyio.Event(), anyio.Event()
        self._on = on

    async def __call__(self, event: Event, _: Io) -> Done:
        """Act."""
        self.count += 1
        self.began.set()
        try:
            if self._on:
                await anyio.sleep_forever()
        finally:
            self.over.set()
        return Done(request=event.position)


@pytest.mark.parametrize("kind", ["attended", "once", "again"])
async def test_what_runs_is_told_to_end_when_the_database_is_silent_for_too_long(
    server: Server, log: PostgresLog, kind: Kind
) -> None:
    first, second = Acting(on=True), Acting(on=False)
    chosen = {"attended": Attended, "once": Once, "again": Again}
    performed: Performers = {**dict.fromkeys(chosen.values(), second), chosen[kind]: first}
    async with live(log, [Boss()], performed) as runtime:
        await runtime.append(Asked(kind=kind), "one", "tests")
        with anyio.fail_after(SECONDS):
            await first.began.wait()
            first.began = anyio.Event()
            server.pause()
            try:
                await first.over.wait()
            finally:
                server.resume()
            other: Kind = "once" if kind != "once" else "attended"
            await runtime.append(Asked(kind=other), "two", "tests")
            await second.began.wait()
            if kind == "again":
                await first.began.wait()
    found = types_of(log)
    assert found.count("effect.interrupted") == (0 if kind == "again" else 1)
    assert found.count("holding.done") == 1
    assert log.verify(decode=True).ok


async def test_a_clock_that_jumps_ends_the_lease_until_it_is_renewed(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead, acting = lease_module.boottime, [0], Acting(on=False)
    monkeypatch.setattr(lease_module, "boottime", lambda: real() + ahead[0])
    async with live(log, [Boss()], {Once: acting}) as runtime:
        held = runtime._live
        assert held is not None
        assert held()
        ahead[0] = 3600 * 10**9  # as after a host was suspended
        assert not held()
        await runtime.append(Asked(kind="once"), "one", "tests")
        with anyio.fail_after(SECONDS):
            await acting.began.wait()
        assert held()
    assert acting.count == 1


def test_a_take_over_is_a_fact_that_says_from_whom_and_why(
    log: PostgresLog, server: Server, forked: Callable[[Callable[[int], None]], Fork]
) -> None:
    with log.lease("first") as lease, closing(lease.open()) as storage:
        assert storage.taken_over is None, "from nobody"
        BatchWriter(storage).create(storage.log_id())
    with log.lease("second") as lease, closing(lease.open()) as storage:
        taken = storage.taken_over
        assert taken is not None
        assert (taken.epoch, taken.why) == (2, "released")
        assert taken.previous.endswith(", first")
        assert taken.holder.endswith(", second")
    old = forked(partial(_hold_on, log))
    assert old.has_reported(1)
    until(lambda: log.holder().live, "its session is seen")
    found: list[LogTakenOver | None] = []
    taking = threading.Thread(target=_take_after, args=(log, found))
    taking.start()
    until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
    old.kill(0)
    killed = monotonic()
    taking.join(SECONDS)
    assert [one and one.why for one in found] == ["lost"], "its session was seen to end"
    assert server.sql("SELECT count(*) FROM pm.standby") == "0"
    assert monotonic() - killed < LEASE_MS / 1000 + 2
    old.end()


def _hold_on(log: PostgresLog, out: int) -> None:
    with log.lease("third") as lease, closing(lease.open()):
        os.write(out, b"held\n")
        signal.pause()


def _take_after(log: PostgresLog, found: list[LogTakenOver | None], standby: Following | None = None) -> None:
    with (
        suppress(GaveUp), log.lease("fourth", standby=standby or Following()) as lease,
        closing(lease.open()) as storage,
    ):  # fmt: skip
        found.append(storage.taken_over)


def test_only_commits_that_wait_for_standbys_renew_a_lease(log: PostgresLog, server: Server) -> None:
    renewals = f"SELECT renewals FROM pm.log WHERE name = '{log.place.partition('#')[2]}'"
    with log.lease("first") as lease, closing(lease.open()) as storage:
        BatchWriter(storage).create(storage.log_id())
        storage.settle()
        before = int(server.sql(renewals))
        for _ in range(3):
            storage.settle()
        assert int(server.sql(renewals)) == before
        end = monotonic() + SECONDS
        while int(server.sql(renewals)) == before:  # it is renewed when a third of it has passed
            storage.settle()
            assert monotonic() < end


def test_of_two_primaries_a_standby_watches_the_newest_and_takes_over_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "APPEND_SECONDS", 0.5)
    monkeypatch.setattr(hold_module, "TAKE_SECONDS", 2.0)
    monkeypatch.setattr(lease_module, "AFRESH_SECONDS", 0.2)
    with cluster() as three:
        first, second = (PostgresLog(three.address("two"), tmp_path) for _ in range(2))  # the old one stands first
        found: list[LogTakenOver | None] = []
        taking = threading.Thread(target=_take_after, args=(second, found))
        with first.lease("first") as lease, closing(lease.open()) as storage:
            writer = BatchWriter(storage)
            writer.create(storage.log_id())
            taking.start()
            until(lambda: three.a.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
            three.fail_over()  # and the old one lives, and takes itself for the primary
            writer.write([draft(1)])
            assert storage.age[1] == 2, "it is on the new one"
            new = next(one for one in (three.b, three.c) if one.sql("SELECT pg_is_in_recovery()") == "f")
            until(lambda: new.sql("SELECT count(*) FROM pm.standby WHERE at > now() - interval '1 second'") == "1",
                  "it follows there")
            epoch = storage.age[0]
            writer.write([draft(2)])
        taking.join(SECONDS)
        (taken,) = found
        assert taken is not None
        assert (taken.why, taken.timeline, taken.epoch) == ("released", 2, epoch + 1)
        log = PostgresLog(new.address("two"), tmp_path)
        assert log.verify(decode=True).ok
        with closing(log.reader()) as reader:
            assert [event.id for event in events(reader)][1:] == ["note-1", "note-2"]
