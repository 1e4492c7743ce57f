"""Starting the daemon on a long log: from starting the process until it has answered ``status`` on its socket.

The log is a workspace's own: a reading of the example's surfaces, then permit requests that the OA grants or refuses.
The last length goes on until the newest segment is nearly full, for that is what an opening checks in full.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.harness import ROOT, Bench, Row, Spread
from benchmarks.workload import Clock, draft, open_new
from pmagent import __version__
from pmagent.actors.core.engine import Engine
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.registry import all_actors
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.oa import OaPermitRequested
from pmagent.events.log import now
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.service.operations import call
from pmagent.workspace import trust
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import Registry, describe

_UP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pmagent.service.daemon import serve
serve(Path(sys.argv[2]))
"""
_BATCH = 512


def run(bench: Bench) -> list[Row]:
    """Three lengths of log, with the snapshot of the last orderly stop and without any."""
    rows: list[Row] = []
    for size in bench.sizes:
        last = size == bench.sizes[-1]
        workspace = bench.folder / f"workspace-{size}"
        events, newest = write_workspace(workspace, size, fill=last and not bench.quick)
        snapshot = Layout(workspace).snapshot
        cold: list[float] = []
        warm: list[float] = []
        for _ in range(bench.runs):
            snapshot.unlink(missing_ok=True)
            cold.append(start_seconds(workspace))  # leaves a snapshot behind when it stops
            warm.append(start_seconds(workspace))
        rows += [
            Row(
                what=f"daemon start, {events:,} events, with snapshot", figure=Spread.of(warm), unit="s",
                target="< 1 s" if last else "", reached=Spread.of(warm).median < 1 if last else None,
                note=f"newest segment holds {newest / 2**20:.0f} of {SEGMENT_BYTES / 2**20:.0f} MiB",
            ),
            Row(
                what=f"daemon start, {events:,} events, without snapshot", figure=Spread.of(cold), unit="s",
                target="< 5.5 s" if last else "", reached=Spread.of(cold).median < 5.5 if last else None,
            ),
        ]
    return rows


def start_seconds(workspace: Path) -> float:
    """Start a daemon, wait for its answer, stop it in order; the seconds until the answer."""
    start = time.perf_counter()
    daemon = subprocess.Popen(
        [sys.executable, "-I", "-c", _UP, str(ROOT), str(workspace)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        socket = Layout(workspace).socket
        while not socket.exists():
            assert daemon.poll() is None, f"the daemon ended with {daemon.returncode}"
            time.sleep(0.001)
        call(workspace, "status")
        return time.perf_counter() - start
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


def write_workspace(workspace: Path, events: int, *, fill: bool) -> tuple[int, int]:
    """A workspace whose log has at least ``events`` events; ``fill``: and a newest segment that is nearly full.
    Returns how many events there are, and how many bytes the newest segment has."""
    shutil.copytree(ROOT / "examples" / "workspace", workspace)
    layout = Layout(workspace)
    layout.prepare()
    clock = Clock(events + 2 * _BATCH, 0.5)
    storage, committer, sequencer = open_new(layout.log, clock())
    engine = Engine(all_actors(), sequencer)

    def accept(payload: msgspec.Struct, id: str, actor: str, causation: int = 0) -> int:
        out = engine.accept(draft(payload, id, actor, causation), clock())
        assert out is not None, "each id is new"
        committer.submit(out.events)
        return out.starts[0].position if out.starts else 0

    started = DaemonStarted(version=__version__, python="3", surface="daemon")
    read = accept(started, "daemon.started:1", "daemon")
    observed = msgspec.structs.replace(read_surfaces(workspace), request=read)
    accept(observed, f"{read}.outcome", "kernel", read)
    count = 0
    while sequencer.position < events or (fill and not _nearly_full(layout.log)):
        for _ in range(_BATCH):
            action = "feature_work" if count % 4 else "no_such_action"
            asked = OaPermitRequested(action=action, subject=f"run-{count}", holder="orchestrator", seconds=30.0)
            accept(asked, f"permit-{count}", "operator")
            count += 1
        committer.commit()
    assert storage.tail().time <= now(), "what comes next is later"
    Registry().note(workspace, describe(layout, storage.log_id(), storage.tail()))
    storage.close()
    trust.accept(workspace)
    return sequencer.position, _newest(layout.log).stat().st_size


def _newest(log: Path) -> Path:
    return max(log.glob("*.jsonl"))


def _nearly_full(log: Path) -> bool:
    return _newest(log).stat().st_size > SEGMENT_BYTES - (1 << 20)


if __name__ == "__main__":
    print(start_seconds(Path(sys.argv[1])))
