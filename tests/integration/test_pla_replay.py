"""A session in which was typed replays from its log alone: no port is opened, no frame is read, no clock is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.histories import FOLDER

ROOT = Path(__file__).resolve().parents[2]
LOG = FOLDER / "typing" / "log"
REPLAY = """
import json, os, sys, time

tripped = set()
WIRES = ("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.", "tempfile.", "shutil.",
         "os.mkdir", "os.remove", "os.rename", "fcntl.", "termios.", "pty.")
PACKAGES = ("serial", "serial_asyncio", "fastjsonschema", "anyio", "asyncio", "firmware", "pmagent", "structlog")


def hook(name, arguments):
    if name.startswith(WIRES):
        tripped.add(name)
    if name == "import" and arguments[0].partition(".")[0] in PACKAGES:
        tripped.add(arguments[0])
    if name == "open" and not str(arguments[0]).startswith((sys.argv[1], sys.prefix, sys.base_prefix, sys.argv[2])):
        tripped.add(str(arguments[0]))


def clock(*_):
    tripped.add("clock")
    return 0.0


from pmagent.actors.registry import all_actors
from pmagent.replay.replayer import replay_log

actors = all_actors()
sys.addaudithook(hook)
time.time = time.monotonic = clock
result = replay_log(sys.argv[1], actors)
found = {"equal": result.equal, "decisions": result.decisions, "tripped": sorted(tripped)}
try:
    open("/dev/ttyACM0")
except OSError:
    assert "/dev/ttyACM0" in tripped, "the wires are there"
print(json.dumps(found))
"""


def test_a_replay_of_typing_touches_nothing_but_the_log(tmp_path: Path) -> None:
    recorded = b"".join(file.read_bytes() for file in LOG.glob("*.jsonl"))
    for kind in (b"hid.commit_requested", b"hid.ended", b"hid.outcome_unknown", b"pla.frame_observed"):
        assert b'"type":"%s"' % kind in recorded
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(LOG), str(ROOT)], cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["tripped"] == []
    assert found["equal"]
    assert found["decisions"] > 100
