"""The statements of docs/session-log.md about session logs are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pmagent.contracts.payload import types
from pmagent.projections.sessions.entries import WRITERS
from pmagent.projections.sessions.sessions import Sessions
from tests.support.cases import each
from tests.support.pla_sessions import SESSION, entries, folded, shown, typing

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "session-log.md").read_text()
GOOD = shown(folded(typing().events))[f"sessions/{SESSION}.jsonl"]


def test_the_page_names_each_event_that_the_projection_hears_and_tells_of() -> None:
    """Requests are heard for who asked, and what the link is handed for whose it is: they are told by their answers."""
    names = {cls: name for name, cls in types().items()}
    heard = {names[cls] for cls in Sessions.hears}
    named = set(re.findall(r"`((?:pla|hid|actor|request)\.[a-z_]+)`", PAGE))
    silent = {name for name in heard if name.endswith("_requested") and name != "hid.commit_requested"}
    assert heard - silent - {"log.created"} == named


def test_the_page_has_each_detail_of_a_typed_text() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    for entry in entries(typing().events):
        assert set(entry["details"]) <= named, entry


def test_the_projection_knows_of_every_decision_of_the_plas_actors() -> None:
    """No decision: the words of operators and borders, and the facts that performers bring."""
    said = {name for name, cls in types().items() if name.startswith("pla.") and cls not in WRITERS}
    facts = {name for name in said if name.endswith("_requested")} | {"pla.frame_observed", "pla.frame_failed"}
    assert said == facts | {"pla.contract_broken", "pla.revealed"}
    assert "pla.execution_requested" not in said


@each("damage", [b"", b"alice"])
def test_the_page_program_checks_a_session_log_without_pmagent(tmp_path: Path, damage: bytes) -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    path = tmp_path / "session.jsonl"
    path.write_bytes(GOOD.replace(damage, b"mallo") if damage else GOOD)
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    if damage:
        assert done.returncode == 1
        assert "line 1 was changed" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == entries(typing().events)[-1]["checksum"]
