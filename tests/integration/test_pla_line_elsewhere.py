"""A device that is plugged into a worker's host: a real daemon, a real worker, a database, the firmware behind a pseudo
terminal. Whatever parts them, nothing is typed beyond the lease of the line, and nothing twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pmagent.workspace.trust import accept
from tests.support.pla_live import Device, asked, await_event, end_of_log, events, pla
from tests.support.daemons import running
from tests.support.postgres import Proxy, Server, one_server
from tests.support.workers import HANDS, LOG, Worker, joined, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where a worker may carry the line."""
    with one_server() as made:
        joined(made)
        yield made


@pytest.fixture
def lab(workspace: Path, server: Server) -> Path:
    """A workspace whose log lies there, and whose device is that of the worker ``bench``."""
    server.sql(f"UPDATE pm.log SET name = 'old-' || log_no WHERE name = '{LOG}'; TRUNCATE pm.line")
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent/config.toml").write_text(
        f'[storage]\nlog = "{server.address(LOG)}"\nreplicated = false\n'
        f'[pla]\noperator = "ada"\ndevice = "worker:{HANDS}/bench"\n'
    )
    accept(workspace)
    return workspace


def bench(server: Server, folder: Path, address: str = "") -> Worker:
    """The worker with the device."""
    line = {"device": str(folder / "device")}
    return Worker(server, folder / "bench", folder / "nothing", address, line=line, tools=[])


def test_first(lab: Path, server: Server, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    device = Device(tmp_path / "device", tmp_path / "typed.txt")
    worker = bench(server, tmp_path)
    try:
        with running(lab) as daemon:
            await_event(lab, "hid.linked")
            for mode in ("SUGGEST", "EXECUTE"):
                pla(lab, "mode", mode)
            pla(lab, "arm")
            proposal = asked(lab, "propose", "type: hello")
            print(proposal)
            print(pla(lab, "approve", proposal["proposal_id"], "--digest", proposal["digest"]).text)
            assert (tmp_path / "typed.txt").read_text() == "hello"
            assert daemon.end()[0] == 0
    finally:
        print(worker.said())
        worker.kill()
        device.close()
