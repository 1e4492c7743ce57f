"""Workers that are killed at each step of an attempt, whose statements or answers are lost, or that ask just as their
attempt is taken back: an attempt begins once at most, and ends once in the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.commands import SECONDS, spawn
from tests.support.effort import some
from tests.support.postgres import Proxy, Server, one_server
from tests.support.sandboxes import by_root, needs_sandbox
from tests.support.workers import (
    HANDS,
    Worker,
    joined,
    logged,
    made_lab,
    ran,
    rows,
    running_plan,
    short_lease,
    sleepers,
    task,
    until,
    working,
)

pytestmark = [needs_sandbox, pytest.mark.slow]

KILLED_AT = """
import os, pathlib, signal
from pmagent.events.postgres.attempts import PostgresWorkerTable as Table
from pmagent.workers.worker import Box
home = pathlib.Path("HOME")
claim, report = Table.claim, Table.report
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def before_claim(*given):
    (home / "asks").touch()
    while not (home / "now").exists():
        os.sched_yield()
    die()
def after_claim(*given):
    return claim(*given) and die()
def after_report(*given):
    report(*given)
    die()
def dying(*_, **__):
    die()
PLACE
"""
"""The first lines of a worker that kills itself at a place; before it claims, once the file "now" is there. Behind the
start of its box it is killed when that runs."""

PLACES = {
    "before the claim": "Table.claim = before_claim",
    "after the claim": "Table.claim = after_claim",
    "before the start": "Box.begin = dying",
    "after the start": "",
    "before the result": "Table.report = dying",
    "after the result": "Table.report = after_report",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where workers may claim."""
    with one_server() as made:
        joined(made)
        yield made


@pytest.fixture
def lab(workspace: Path, server: Server) -> Path:
    """A workspace whose log lies there, and no worker."""
    return made_lab(workspace, server)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """The proxy between a worker and the server."""
    folder = server.folder.parent / "proxy"
    folder.mkdir(exist_ok=True)
    with closing(Proxy(server, folder)) as made:
        yield made
    (folder / ".s.PGSQL.5432").unlink()


def through(proxy: Proxy) -> str:
    """The address of the server, as a worker reaches it behind the proxy."""
    return f"postgresql:///postgres?host={proxy.folder}&user={HANDS}"


def check(lab: Path, server: Server, *, exited: int = 0, lost: int = 0, cancelled: int = 0) -> None:
    """The one attempt was asked for once, has ended so, and nothing of it is left."""
    assert len(logged(lab, "task.attempt_requested")) == 1
    assert len(logged(lab, "task.exited")) == exited
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"] * lost
    assert [one["reason"] for one in logged(lab, "effect.cancelled")] == ["permit_revoked"] * cancelled
    assert rows(server) == [], "what is durable in the log needs no row"
    assert spawn("log", "verify", cwd=lab).code == 0
    assert spawn("replay", cwd=lab).code == 0


@pytest.mark.parametrize("place", some(list(PLACES), 1))
def test_a_worker_killed_at_any_step_of_an_attempt_leaves_one_end_of_it(
    lab: Path, server: Server, tmp_path: Path, place: str
) -> None:
    home = tmp_path / "one"
    changed = KILLED_AT.replace("HOME", str(home)).replace("PLACE", PLACES[place])
    ends = place in ("before the claim", "after the result")
    with short_lease(lab, 30 if ends else 3), working(server, home, lab, changed=changed) as worker:
        if place == "before the claim":
            until((home / "asks").exists, "it is about to ask")
        nap = "sleep 341" if place == "after the start" else ":"
        with running_plan(lab, task("one", f"echo begun; {nap}; exit 0")) as run:
            if place == "before the claim":
                until(lambda: rows(server) == ["open"], "there is something to claim")
                (home / "now").touch()
            if place == "after the start":
                until(lambda: bool(sleepers("341")), "its program runs")
                worker.process.kill()
            assert worker.process.wait(SECONDS) == -signal.SIGKILL
            with working(server, tmp_path / "two", lab) as other:
                done = run.result()
                claimed = other.claims()
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
    assert (done.code, claimed) == (0 if ends else 1, int(place == "before the claim"))
    assert not sleepers("341"), "its box died with it"
    check(lab, server, exited=int(ends), lost=int(not ends))


@contextmanager
def held(worker: Worker, server: Server) -> Iterator[None]:
    """The worker stands still for the length of a block, and still counts as one that is there."""
    os.kill(worker.process.pid, signal.SIGSTOP)
    server.sql("UPDATE pm.worker SET seen = now() + interval '1 hour'")
    try:
        yield
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)


LOST = {
    "claim": (0, rb"[0-9a-f]{32}"),
    "answer to the claim": (1, rb"mark-of-the-wish"),
    "output": (0, rb"mark-of-the-output"),
    "report": (0, rb'"exit_code"'),
    "answer to the report": (1, rb"\0\0\0\x04done"),
}
"""Each message that is lost -> its way through the proxy, and words that it alone contains."""


@pytest.mark.parametrize("lost", some(list(LOST), 1))
def test_a_statement_of_a_worker_or_its_answer_that_is_lost_changes_nothing(
    lab: Path, server: Server, proxy: Proxy, tmp_path: Path, lost: str
) -> None:
    with short_lease(lab), working(server, tmp_path / "one", lab, address=through(proxy)) as worker:
        script = ": mark-of-the-wish; echo mark-of-the-output; exit 0"
        with held(worker, server), running_plan(lab, task("one", script)) as run:
            until(lambda: rows(server) == ["open"], "there is something to claim")
            proxy.lose(*LOST[lost])
            os.kill(worker.process.pid, signal.SIGCONT)
            assert run.result().code == 0
        assert proxy.has_lost
        assert worker.claims() == 1
        assert "result refused" not in worker.said()
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
        assert worker.stop() == 0
    check(lab, server, exited=1)
    assert logged(lab, "task.exited")[0]["last_lines"] == ["mark-of-the-output"]


def test_a_claim_whose_answer_is_lost_for_longer_than_its_lease_is_never_begun(
    lab: Path, server: Server, proxy: Proxy, tmp_path: Path
) -> None:
    with short_lease(lab, 3), working(server, tmp_path / "one", lab, address=through(proxy)) as worker:
        with held(worker, server), running_plan(lab, task("one", ": mark-of-the-wish; exit 0")) as run:
            until(lambda: rows(server) == ["open"], "there is something to claim")
            proxy.lose(*LOST["answer to the claim"], proxy.part)
            os.kill(worker.process.pid, signal.SIGCONT)
            assert run.result().code == 1
        assert proxy.has_lost
        proxy.heal()
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
        check(lab, server, lost=1)
        assert ran(lab, task("next", "exit 0")).code == 0, "it takes the next attempt"
        assert worker.claims() == 1, "and began that one alone"


@pytest.mark.parametrize("how", ["a pause", "a revoked permit"])
def test_an_attempt_that_is_taken_back_before_it_is_claimed_is_not_begun(
    lab: Path, server: Server, tmp_path: Path, how: str
) -> None:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'hands' AND query LIKE '%pm.unsafe%'"
    with short_lease(lab), working(server, tmp_path / "one", lab) as worker:
        with held(worker, server), running_plan(lab, task("one", "exit 0")) as run:
            until(lambda: rows(server) == ["open"], "there is something to claim")
            if how == "a pause":
                assert spawn("pause", cwd=lab).code == 0
                until(lambda: rows(server, "epoch") == ["0"], "nobody may claim it")
            else:
                (lab / "share" / "HANDOFF_KERNEL.json").write_text("{")
                assert run.result().code == 1
            os.kill(worker.process.pid, signal.SIGCONT)
            for _ in range(2):
                now = server.sql("SELECT clock_timestamp()")
                until(lambda now=now: server.sql(f"{asked} AND query_start > '{now}'") != "0", "it has asked")  # type: ignore[misc]
            assert worker.claims() == 0
            if how == "a pause":
                assert rows(server) == ["open"]
                assert spawn("resume", cwd=lab).code == 0
                assert run.result().code == 0
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
    check(lab, server, exited=int(how == "a pause"), cancelled=int(how != "a pause"))


OUTSIDE = """
import http.server, sys, time
class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[1], "a") as file:
            print(time.clock_gettime_ns(time.CLOCK_BOOTTIME), file=file)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", 80), Answering)
print("listens", flush=True)
server.serve_forever()
"""

ASKS_ON = """
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://api.example.org/", timeout=5).read()
    except OSError:
        pass
    time.sleep(0.05)
"""


@contextmanager
def outside(worker: Worker, asked: Path) -> Iterator[None]:
    """A public host that the worker's reaches by a wire, as api.example.org; ``asked`` gets a line for each request."""
    command = ["unshare", "--net", "--", sys.executable, "-I", "-c", OUTSIDE, str(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "listens\n"
            there, hosts = str(worker.process.pid), asked.with_name("hosts")
            hosts.write_text("93.184.216.34 api.example.org api.example.org.\n")
            within, beside = ("nsenter", "-t", there, "-n"), ("nsenter", "-t", str(host.pid), "-n")
            for command in (
                [*within, "ip", "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", str(host.pid)],
                [*within, "ip", "address", "add", "93.184.216.33/24", "dev", "out"],
                [*within, "ip", "link", "set", "out", "up"],
                [*beside, "ip", "address", "add", "93.184.216.34/24", "dev", "in"],
                [*beside, "ip", "link", "set", "in", "up"],
                ["nsenter", "-t", there, "-m", "mount", "--bind", str(hosts), "/etc/hosts"],
            ):
                subprocess.run(command, check=True, timeout=SECONDS)
            yield
        finally:
            host.kill()


@by_root
def test_a_tool_of_a_worker_without_its_database_reaches_nobody_once_its_claim_is_over(
    lab: Path, server: Server, proxy: Proxy, tmp_path: Path
) -> None:
    (lab / "orchestra.config.yaml").write_text(
        'version: "1.0"\nwhitelist_tools: [python3, sh]\n'
        "policies: {allow_network: true}\nsecurity: {net: {allow_domains: [api.example.org]}}\n"
    )
    asked = tmp_path / "asked"
    asked.touch()
    allowed, reached = {"sandbox": {"fs": "read-only", "net": "allow"}}, through(proxy)
    asking = task("asks", ASKS_ON, tools=["python3"], constraints=allowed)
    settings = {"address": reached, "hosts": ["api.example.org"]}
    with short_lease(lab, 3), working(server, tmp_path / "one", lab, **settings) as worker, outside(worker, asked):
        with running_plan(lab, asking) as run:
            until(lambda: len(asked.read_text().splitlines()) > 3, "it asks")
            proxy.part()
            before = len(asked.read_text().splitlines())
            assert run.result().code == 1
            after = len(asked.read_text().splitlines())
        assert after > before, "the network of its host has not failed"
        proxy.heal()
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
        assert ran(lab, task("next", "exit 0")).code == 0
        assert len(asked.read_text().splitlines()) == after, "it asked when its attempt had ended"
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
