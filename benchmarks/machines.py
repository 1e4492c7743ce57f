"""The log in PostgreSQL with one synchronous standby: 256 writers, each acknowledged by itself, and reading back.
Beside it stand, in the same turns, segments, and the same statement without pmagent: as fast as the server takes
batches that were made before, and as fast as 256 writers get theirs acknowledged.

All servers share this machine's processors and its disk with the writers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import psycopg

from benchmarks.harness import Bench, Row, Spread, alternate, percentile
from benchmarks.workload import Noted, draft, note
from pmagent.events.event import ZERO_SUM, Draft, Event, Tail
from pmagent.events.evidence import log_in
from pmagent.events.line import seal
from pmagent.events.log import now, opening_events
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import runs
from pmagent.events.sequencer import Sequencer
from pmagent.events.store import LogStore
from pmagent.service.daemon import spare_collector
from tests.conftest import fresh_example
from tests.support.commands import spawn
from tests.support.daemons import running
from tests.support.one_writer import Log
from tests.support.patroni import TTL, lacks, patroni_cluster
from tests.support.postgres import WRITER, Server, lacking, servers
from tests.support.workers import LOG, joined, working

WRITERS = 256
_APPEND = "SELECT pm.append(%s, %s, %s, %s, %s, %s, %s, %s, %b, ARRAY[%s]::bigint[], ARRAY[%s]::int[])"

_LINE = (
    b'{"position":1000000,"batch":10000,"time":"2026-11-27T12:00:00.000000Z","id":"%b","kind":"fact","actor":"%b",'
    b'"type":"%b","correlation":"","causation":0,"data":%b,"sum":"%b"}\n'
)


def run(bench: Bench) -> list[Row]:
    """A server, its standby, and a folder beside them."""
    if why := lacking():
        return [Row(what="log in PostgreSQL", figure=Spread(0, 0, 0), unit="", note=why)]
    electing = _electing(bench)  # first: it takes most servers, and most can fail in it
    with _place(bench.folder) as folder, _pair(folder) as primary:
        rows = [*_appending(bench, primary), _reading(bench, primary), *_following(bench, primary)]
        rows += [_tailing(bench, primary), _workers(bench, primary)]
    return [*rows, electing]


def _electing(bench: Bench) -> Row:
    """How long nothing is acknowledged when the leader's host loses its power and Patroni elects another one."""
    what, gaps, lost = "Patroni elects another primary: until the next acknowledgement", [], 0
    if why := lacks():
        return Row(what=what, figure=Spread(0, 0, 0), unit="s", note=why)
    for turn in range(bench.count(3, 1)):
        with patroni_cluster() as nodes:
            writer = nodes.writer(f"bench-{turn}", old := nodes.leader())
            writer.more(1_000)
            nodes.hosts[old].kill()
            nodes.leader(apart_from=old)
            writer.more(1_000)
            writer.end()
            times = sorted(writer.times)
            gaps.append(max(later - earlier for earlier, later in pairwise(times)) / 1e9)
            lost += len(set(writer.acknowledged) - set(nodes.read(f"bench-{turn}")))
    note = f"ttl {TTL} s, 64 writers; {lost} acknowledged events lost"
    return Row(what=what, figure=Spread.of(gaps), unit="s", note=note)


@contextmanager
def _place(folder: Path) -> Iterator[Path]:
    """Where servers can lie: on the disk that is measured, unless their user cannot come there."""
    if all(above.stat().st_mode & 0o001 for above in folder.parents):
        folder.chmod(0o755)
        yield folder
    else:
        with servers() as other:
            yield other


@contextmanager
def _pair(folder: Path) -> Iterator[Server]:
    primary = Server.made(folder / "a", shared_buffers="128MB")
    try:
        primary.prepare()
        standby = primary.standby(folder / "b", "b")
        try:
            primary.configure(synchronous_standby_names="ANY 1 (b)", shared_buffers="128MB")
            primary.reload()
            yield primary
        finally:
            standby.stop()
    finally:
        primary.stop()


def _appending(bench: Bench, primary: Server) -> Iterator[Row]:
    times, noted = list[float](), list[float]()
    costs: dict[str, list[float]] = {"segments": [], "postgres": []}
    turn = iter(range(10_000))
    each = bench.count(120, 4)
    spare_collector()  # as in each daemon

    def segments() -> float:
        return asyncio.run(_append(log_in(bench.folder / f"many-{next(turn)}" / "log"), each, [], costs["segments"]))

    def postgres() -> float:
        return asyncio.run(_append(PostgresLog(primary.new_log(), bench.folder), each, times, costs["postgres"]))

    def raw() -> float:
        return _raw(primary, each)

    def without() -> float:
        return asyncio.run(_without(primary, each, noted))

    measures = (segments, postgres, raw, without)
    files, ours, statement, theirs = (Spread.of(values) for values in alternate(bench.runs, *measures))
    p50, p99 = (percentile(times, share) * 1e3 for share in (0.5, 0.99))
    what = f"replicated append, {WRITERS} writers, each acknowledged"
    yield Row(
        what=what, figure=ours, unit="events/s", beside=f"{WRITERS} writers who use the same statement without pmagent",
        limit=theirs, ratio=ours.median / theirs.median, target=">= 0.7 of it",
        reached=ours.median >= 0.7 * theirs.median, note=f"p50 {p50:.1f} ms, p99 {p99:.1f} ms",
    )
    yield Row(
        what=f"{what}, again", figure=ours, unit="events/s", limit=statement, ratio=ours.median / statement.median,
        beside=f"no writers: the same statement with batches of {WRITERS} lines that were made before",
    )
    yield Row(
        what=f"{what}, once more", figure=ours, unit="events/s", beside="segments on this disk", limit=files,
        ratio=ours.median / files.median, target=">= 0.25 of it", reached=ours.median >= 0.25 * files.median,
    )
    mine, local = (Spread.of(costs[name]) for name in ("postgres", "segments"))
    ratio = mine.median / local.median
    yield Row(
        what="processor time of the writer, one replicated event", figure=mine, unit="µs", beside="segments",
        limit=local, ratio=ratio, target="<= 1.5 of it", reached=ratio <= 1.5,
    )


def _reading(bench: Bench, primary: Server) -> Row:
    size = bench.count(200_000, 1_000)
    there, here = PostgresLog(primary.new_log(), bench.folder), log_in(bench.folder / "read" / "log")
    for store in (here, there):
        _fill(store, size)
    ours, files = (
        Spread.of(values) for values in alternate(bench.runs, lambda: _read(there, size), lambda: _read(here, size))
    )
    return Row(
        what=f"read from PostgreSQL, verified and decoded, {size:,} events", figure=ours, unit="events/s",
        beside="segments", limit=files, ratio=ours.median / files.median, target=">= 0.6 of it",
        reached=ours.median >= 0.6 * files.median,
    )


def _tailing(bench: Bench, primary: Server) -> Row:
    """From when an event is sent until a process that follows the log has it."""
    store, count = PostgresLog(primary.new_log(), bench.folder), bench.count(1_000, 20)
    source, sink = os.pipe()
    sent, commits = [], []
    with store.lease("bench") as lease, closing(lease.open()) as storage:
        made = _batches(count + 1, 1)
        storage.append_batch(*next(made))
        if not os.fork():
            _follow(store, count, sink)
        os.close(sink)
        assert os.read(source, 1) == b" ", "it follows"
        for before, lines, tail in made:
            sent.append(time.perf_counter())
            storage.append_batch(before, lines, tail)
            commits.append(time.perf_counter() - sent[-1])
            time.sleep(0.005)
    with open(source, "rb") as pipe:
        late = [there - here for here, there in zip(sent, json.load(pipe), strict=True)]
    os.wait()
    p50, p99, worst = (percentile(*one) * 1e3 for one in ((late, 0.5), (late, 0.99), (commits, 0.99)))
    commit = Spread.of([one * 1e3 for one in commits])
    return Row(
        what="tail of a log in PostgreSQL in another process, 200 events/s at most, p99", figure=Spread(p99, p99, p99),
        unit="ms", beside="one replicated commit", limit=commit, ratio=p99 / commit.median, target="<= 3 of it",
        reached=p99 <= 3 * commit.median, note=f"p50 {p50:.1f} ms; p99 of a commit {worst:.1f} ms",
    )


def _follow(store: LogStore, count: int, sink: int) -> NoReturn:
    """Write a space when the first event is there, and then when each of ``count`` more is; in a process of its own."""
    try:
        times: list[float] = []
        with closing(store.reader()) as reader:
            os.write(sink, b" ")
            while len(times) < count:
                reader.changes(len(times) + 1, 60.0)
                times += [time.perf_counter()] * reader.read(len(times) + 2).count(b"\n")
        os.write(sink, json.dumps(times).encode())
    finally:
        os._exit(0)  # what is cut short is no JSON


def _workers(bench: Bench, primary: Server) -> Row:
    """Tasks that sleep, on one worker and on eight, each a process with one place."""
    joined(primary)
    workspace = fresh_example(bench.folder / "workspace")
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent/config.toml").write_text(f'[storage]\nlog = "{primary.address(LOG)}"\n')
    (workspace / "orchestra.config.yaml").write_text(
        'version: "1.0"\nwhitelist_tools: [sleep]\nconcurrency: {max_workers: 64}\nworkers: {labels: [linux]}\n'
    )
    seconds, each = (1, 1) if bench.quick else (5, 3)

    def rate(count: int) -> float:
        with ExitStack() as there:
            for number in range(count):
                there.enter_context(working(primary, bench.folder / f"hands-{count}-{number}", workspace))
            tasks = [
                {"task_id": f"t{n}", "intent": "sleep", "tools": ["sleep"], "inputs": {"args": [str(seconds)]}}
                for n in range(count * each)
            ]
            plan = bench.folder / "plan.json"
            plan.write_text(json.dumps(tasks))
            start = time.perf_counter()
            done = spawn("run", "sleep", "--plan", str(plan), cwd=workspace)
            assert done.code == 0, done.errors
            return count * each / (time.perf_counter() - start)

    with running(workspace):
        one, eight = (
            Spread.of(values) for values in alternate(bench.count(3, 1), lambda: rate(1), lambda: rate(8))
        )
    ratio = eight.median / one.median
    return Row(
        what=f"tasks that sleep {seconds} s, on 8 workers", figure=eight, unit="tasks/s", beside="on 1 worker",
        limit=one, ratio=ratio, target=">= 6 of it", reached=ratio >= 6,
    )


class _Standby(threading.Thread):
    """Waits for a log, and says when it holds it."""

    def __init__(self, store: PostgresLog) -> None:
        super().__init__()
        self._store = store
        self.follows, self.holds_at = threading.Event(), 0.0

    def follow(self) -> int:
        """It folds nothing."""
        self.follows.set()
        return 0

    def run(self) -> None:
        """In its thread."""
        with self._store.lease("bench", standby=self):
            self.holds_at = time.perf_counter()


def _following(bench: Bench, primary: Server) -> Iterator[Row]:
    """From when a holder lets go, or is killed, until a standby on the same server holds the log and appends."""

    def released() -> float:
        address = primary.new_log()
        with PostgresLog(address, bench.folder).lease("bench"):
            standby = _Standby(PostgresLog(address, bench.folder))
            standby.start()
            standby.follows.wait()
            start = time.perf_counter()
        standby.join()
        return standby.holds_at - start

    def killed() -> float:
        address = primary.new_log()
        child = os.fork()
        if not child:
            with PostgresLog(address, bench.folder).lease("bench"):
                signal.pause()
        store = PostgresLog(address, bench.folder)
        while not (store.exists() or store.holder().live):
            time.sleep(0.02)
        standby = _Standby(PostgresLog(address, bench.folder))
        standby.start()
        standby.follows.wait()
        time.sleep(1.0)  # it has seen the holder's session
        start = time.perf_counter()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        standby.join()
        return standby.holds_at - start

    for what, measure, most in (
        ("take-over of a log that its holder has let go of", released, 1.0),
        ("take-over of a log whose holder was killed (its lease: 30 s; effects start when that is over)", killed, 32.0),
    ):
        figure = Spread.of([measure() for _ in range(bench.runs)])
        yield Row(what=what, figure=figure, unit="s", target=f"< {most:g} s", reached=figure.median < most)


def _line(one: Draft) -> bytes:
    """As long as a line of the log."""
    return _LINE % (one.id.encode(), one.actor.encode(), one.type.encode(), one.raw, ZERO_SUM.encode())


async def _append(store: LogStore, each: int, times: list[float], costs: list[float]) -> float:
    with store.lease("bench") as lease:
        storage = lease.open()
        sequencer = Sequencer(storage.tail())
        log = Log(storage, sequencer)
        log.append_events(opening_events(storage, storage.log_id(), None, sequencer, now()))
        await asyncio.gather(*(_writer(log, f"warm-{k}", 2, []) for k in range(WRITERS)))
        start, spent = time.perf_counter(), time.process_time()
        await asyncio.gather(*(_writer(log, f"w{k}", each, times) for k in range(WRITERS)))
        seconds, spent = time.perf_counter() - start, time.process_time() - spent
        costs.append(spent / (WRITERS * each) * 1e6)
        await log.aclose()
    return WRITERS * each / seconds


async def _writer(log: Log, name: str, count: int, times: list[float]) -> None:
    for n in range(count):
        start = time.perf_counter()
        await log.append(draft(Noted(n=n, note=note(n)), f"{name}-{n}"))
        times.append(time.perf_counter() - start)


def _batches(count: int, size: int) -> Iterator[tuple[Tail, list[bytes], Tail]]:
    """Batches of notes, one behind the other."""
    sequencer, before = Sequencer(Tail()), Tail()
    for number in range(count):
        start = before.position
        events: list[Event] = [
            sequencer.admit(draft(Noted(n=n, note=note(n)), f"note-{n}"), now()) for n in range(start, start + size)
        ]
        lines, sums = seal(events, number + 1, before)
        tail = Tail(events[-1].position, number + 1, events[-1].time, sums[-1])
        yield before, lines, tail
        before = tail


@contextmanager
def _bare(primary: Server) -> Iterator[tuple[psycopg.Connection[Any], int]]:
    """A connection that holds a new log, and the log's number."""
    address = primary.new_log()
    with psycopg.connect(f"host={primary.folder} user={WRITER} dbname=postgres", autocommit=True) as connection:
        connection.execute("SELECT pm.take(%s, 0, 'bench', '', 'bench', '', true)", (address.log,))
        row = connection.execute("SELECT log_no FROM pm.log WHERE name = %s", (address.log,)).fetchone()
        assert row is not None
        yield connection, row[0]


def _commit(
    connection: psycopg.Connection[Any], log_no: int, before: Tail, lines: list[bytes], tail: Tail
) -> None:  # fmt: skip
    data = b"".join(lines)
    given = (
        log_no, 1, before.position, bytes.fromhex(before.sum), tail.position, tail.batch, tail.time,
        bytes.fromhex(tail.sum), data, tail.position, len(data),
    )  # fmt: skip
    assert connection.execute(_APPEND, given, prepare=True).fetchone() == (1,)


def _raw(primary: Server, count: int) -> float:
    """Lines a second that the server takes in batches that were made before."""
    made = list(_batches(count, WRITERS))
    with _bare(primary) as (connection, log_no):
        start = time.perf_counter()
        for before, lines, tail in made:
            _commit(connection, log_no, before, lines, tail)
        return count * WRITERS / (time.perf_counter() - start)


async def _without(primary: Server, each: int, times: list[float]) -> float:
    """Events a second of as many writers who encode the same notes and use the statement without pmagent."""
    with _bare(primary) as (connection, log_no):
        batches = _Batches(connection, log_no)

        async def writer(k: int, count: int) -> None:
            for n in range(count):
                start = time.perf_counter()
                await batches.append(_line(draft(Noted(n=n, note=note(n)), f"w{k}-{n}")))
                times.append(time.perf_counter() - start)

        await asyncio.gather(*(writer(k, 2) for k in range(WRITERS)))
        start = time.perf_counter()
        await asyncio.gather(*(writer(k, each) for k in range(WRITERS)))
        return WRITERS * each / (time.perf_counter() - start)


class _Batches:
    """What 256 writers need without pmagent: whoever waits is in the next batch, one batch is under way at a time."""

    def __init__(self, connection: psycopg.Connection[Any], log_no: int) -> None:
        self._connection, self._log_no = connection, log_no
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._tail = Tail(time=now())
        self._busy = False

    async def append(self, line: bytes) -> None:
        """Returns when the line is committed."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((line, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._send)
        await future

    def _send(self) -> None:
        taken, self._waiting = self._waiting, []
        self._busy = bool(taken)
        if taken:
            sent = self._loop.run_in_executor(None, self._commit, [line for line, _ in taken])
            sent.add_done_callback(partial(self._committed, [future for _, future in taken]))

    def _committed(self, futures: list[asyncio.Future[None]], sent: asyncio.Future[None]) -> None:
        sent.result()
        for future in futures:
            future.set_result(None)
        self._loop.call_soon(self._send)

    def _commit(self, lines: list[bytes]) -> None:
        before = self._tail
        self._tail = Tail(before.position + len(lines), before.batch + 1, before.time, sha256(lines[-1]).hexdigest())
        _commit(self._connection, self._log_no, before, lines, self._tail)


def _fill(store: LogStore, size: int) -> None:
    with store.lease("bench") as lease, closing(lease.open()) as storage:
        for before, lines, tail in _batches(size // 500, 500):
            storage.append_batch(before, lines, tail)


def _read(store: LogStore, size: int) -> float:
    with closing(store.reader()) as reader:
        start = time.perf_counter()
        found = sum(len(run) for run in runs(reader))
        assert found == size
        return size / (time.perf_counter() - start)
