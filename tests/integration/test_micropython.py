"""The firmware under MicroPython, which is nearer to the board's Python than CPython is."""

from __future__ import annotations

import contextlib
import io
import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support import firmware_player as player
from tests.support.effort import rounds
from tests.support.firmware_scripts import script
from tests.support.micropython import ROOT, ask, run

VECTORS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "firmware" / "vectors").glob("*.json")}


def test_the_vectors_hold(tmp_path: Path) -> None:
    assert set(VECTORS) == {"frames", "digests", "exchanges"}
    assert ask("all_of(given)", tmp_path, **VECTORS) == []


def test_every_module_compiles(tmp_path: Path) -> None:
    """Also those that only a board can run."""
    names = sorted(path.name for path in (ROOT / "firmware").glob("*.py"))
    program = f"""
for name in {names}:
    with open("/project/firmware/" + name) as file:
        compile(file.read(), name, "exec")
try:
    compile("match 1:\\n case 1: pass", "newer", "exec")
except SyntaxError:
    print(len({names}))
"""
    assert {"boot.py", "code.py", "core.py", "hands.py", "loop.py", "safemode.py", "uart.py"} <= set(names)
    assert run(program, tmp_path) == f"{len(names)}\n"


LOOP = """
import sys
sys.path.insert(0, "/project")
from pmagent.firmware.core import Core
from pmagent.firmware.loop import Board, run
from pmagent.firmware.sha256 import sha256

class Pin:
    value = False

class Line:
    connected = True
    in_waiting = out_waiting = 0
    def write(self, data):
        return len(data)

class Hands:
    def __init__(self):
        self.reports = []
    def caps_lock(self):
        return False
    def hand_over(self, report):
        self.reports.append(report[0])
        return ""

class Watchdog:
    fed = 0
    def feed(self):
        self.fed += 1

switch, hands, watchdog, memory = Pin(), Hands(), Watchdog(), bytearray(1)
ticks = iter(range(0, 10000, 8))

def clock():
    now = next(ticks)
    switch.value = now == 160
    if now == 240:
        raise RuntimeError("a fault of the firmware")
    return now

core = Core("device-0001", "0" * 16, "1.0.0", "c" * 64, "1.0.0", "POWER_ON", sha256=sha256)
run(core, Board(clock, switch, Pin(), Line(), hands, lambda: True, watchdog, memory), 50)
print(hands.reports, watchdog.fed, memory[0], core.killed, core.failed)
"""


def test_the_loop_runs_is_killed_and_fails_as_under_cpython(tmp_path: Path) -> None:
    told = run(LOOP, tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(LOOP.replace('sys.path.insert(0, "/project")', "pass"), "loop", "exec"), {})
    assert told == out.getvalue() == "['release', 'release', 'release', 'release', 'release'] 30 75 True True\n"


def test_a_difference_shows(tmp_path: Path) -> None:
    first = VECTORS["exchanges"][0]
    changed = {**first, "steps": [{**first["steps"][0], "led": True}, *first["steps"][1:]]}
    assert len(ask("play(given['exchange'])", tmp_path, exchange=changed)) == 1


def test_random_exchanges_go_as_under_cpython(tmp_path: Path) -> None:
    """Scripts of good and bad requests, damaged lines, switches and waiting: each byte and each report."""
    typing, batches = 0, rounds(4, 1)
    for batch in range(batches):
        scripts = [script(random.Random(batch * 25 + seed)) for seed in range(25)]
        here: list[Any] = [player.recorded(steps, lambda data: sha256(data).hexdigest()) for steps in scripts]
        there = ask("[recorded(steps) for steps in given['scripts']]", tmp_path, scripts=scripts)
        assert there == json.loads(json.dumps(here))
        typing += sum(len(reports) > 3 for _, reports in here)
    assert typing > 10 * batches  # they do type
