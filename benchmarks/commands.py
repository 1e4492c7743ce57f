"""The cost of a command that only looks: ``pmagent status`` without a daemon and with one, beside ``pmagent log tail``
(processor time of the whole command); and a daemon's requests, beside a socket that echoes.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.harness import ROOT, Bench, Row, Spread, alternate
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept

_TARGET: Final = 1.5
_ASKED: Final = b'{"operation":"status","arguments":{}}\n'


def run(bench: Bench) -> list[Row]:
    """The commands and the requests, each beside its measure."""
    workspace = bench.folder / "workspace"
    shutil.copytree(ROOT / "examples" / "workspace", workspace)
    accept(workspace)
    call(workspace, "oa.snapshot")
    rows = [_status(bench, workspace, "no daemon")]
    with _daemon(workspace) as address:
        rows.append(_status(bench, workspace, "with a daemon"))
        rows.append(_requests(bench, address))
    return rows


def _status(bench: Bench, workspace: Path, how: str) -> Row:
    def used(*words: str) -> Callable[[], float]:
        command = (sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), *words)

        def once() -> float:
            before = os.times()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            after = os.times()
            return (after.children_user + after.children_system - before.children_user - before.children_system) * 1e3

        return once

    status, tail = map(Spread.of, alternate(bench.count(9, 1), used("status"), used("log", "tail")))
    ratio = status.median / tail.median
    return Row(
        what=f"`pmagent status`, {how}: processor time", figure=status, unit="ms", beside="`pmagent log tail`",
        limit=tail, ratio=ratio, target=f"<= {_TARGET}", reached=ratio <= _TARGET,
    )


def _requests(bench: Bench, address: str) -> Row:
    """One client, a connection for each request."""
    count = bench.count(2_000, 5)

    def rate(place: str) -> Callable[[], float]:
        def several() -> float:
            start = time.perf_counter()
            for _ in range(count):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(place)
                    client.sendall(_ASKED)
                    with client.makefile("rb") as answer:
                        assert answer.readline()
            return count / (time.perf_counter() - start)

        return several

    with _echo(bench.folder) as echo:
        ours, raw = map(Spread.of, alternate(bench.runs, rate(address), rate(echo)))
    return Row(
        what="a daemon's requests (`status`), one after the other, a connection each", figure=ours, unit="requests/s",
        beside="a thread that answers with the same line", limit=raw, ratio=ours.median / raw.median,
    )


@contextmanager
def _daemon(workspace: Path) -> Iterator[str]:
    """A daemon; the path of its socket."""
    command = (sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), "up")
    environment = {**os.environ, "PMAGENT_CONSOLE_ENABLED": "false"}
    daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        place = Layout(workspace).socket
        while not place.exists():
            assert daemon.poll() is None, f"the daemon ended with {daemon.returncode}"
            time.sleep(0.001)
        call(workspace, "status")
        yield os.path.relpath(place)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


@contextmanager
def _echo(folder: Path) -> Iterator[str]:
    place = os.path.relpath(folder / "echo.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()

        def answer() -> None:
            while True:
                client, _ = listener.accept()
                with client:
                    if not (line := client.recv(65536)):
                        return
                    client.sendall(line)

        thread = threading.Thread(target=answer)
        thread.start()
        yield place
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(place)
        thread.join()


if __name__ == "__main__":
    print(run(Bench(Path(sys.argv[1]))))
