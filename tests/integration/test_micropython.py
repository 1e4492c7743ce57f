"""The firmware under MicroPython, which is nearer to the board's Python than CPython is."""

from __future__ import annotations

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support import firmware_player as player
from tests.support.firmware_scripts import script
from tests.support.micropython import ROOT, ask

VECTORS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "firmware" / "vectors").glob("*.json")}


def test_the_vectors_hold(tmp_path: Path) -> None:
    assert set(VECTORS) == {"frames", "digests", "exchanges"}
    assert ask("all_of(given)", tmp_path, **VECTORS) == []


def test_a_difference_shows(tmp_path: Path) -> None:
    first = VECTORS["exchanges"][0]
    changed = {**first, "steps": [{**first["steps"][0], "led": True}, *first["steps"][1:]]}
    assert len(ask("play(given['exchange'])", tmp_path, exchange=changed)) == 1


def test_random_exchanges_go_as_under_cpython(tmp_path: Path) -> None:
    """Scripts of good and bad requests, damaged lines, switches and waiting: each byte and each report."""
    typing = 0
    for batch in range(4):
        scripts = [script(random.Random(batch * 25 + seed)) for seed in range(25)]
        here: list[Any] = [player.recorded(steps, lambda data: sha256(data).hexdigest()) for steps in scripts]
        there = ask("[recorded(steps) for steps in given['scripts']]", tmp_path, scripts=scripts)
        assert there == json.loads(json.dumps(here))
        typing += sum(len(reports) > 3 for _, reports in here)
    assert typing > 50  # they do type
