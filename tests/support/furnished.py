"""A station with something on every page: runs, an audit, proposals with each kind of end, a frame, a pause."""

from __future__ import annotations

import itertools
import json
import zlib
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tests.support.audited import Sources
from tests.support.frames import chunk
from tests.support.hostile import CORPUS
from tests.support.started import in_workspace
from tests.support.stations import APPROVING, ASKING, Station

PLAN: Final[list[dict[str, Any]]] = [
    {"task_id": "sources", "intent": "List the sources", "tools": ["ls"], "inputs": {"args": ["-R", "docs"]}},
    {"task_id": "words", "intent": "Count the words of the notes", "tools": ["sh"],
     "inputs": {"args": ["-c", "cat docs/* | wc -w | tee $ARTIFACTS/words.txt"]}},
    {"task_id": "second-try", "intent": "Reach a service that is busy at first", "tools": ["sh"],
     "inputs": {"args": ["-c", "test $ORCHESTRA_ATTEMPT -gt 1 || { echo busy, try again >&2; exit 75; }"]},
     "constraints": {"max_retries": 1}},
    {"task_id": "links", "intent": "Check every link", "tools": ["sh"], "depends_on": ["sources"],
     "inputs": {"args": ["-c", "echo docs/old.md: no such page >&2; exit 1"]}, "constraints": {"max_retries": 0}},
    {"task_id": "summary", "intent": "Write the summary", "tools": ["cat"], "depends_on": ["sources", "words"],
     "inputs": {"args": ["/inputs/words/stdout", "/inputs/sources/stdout"]}},
    {"task_id": "publish", "intent": "Publish what was checked", "tools": ["echo"], "depends_on": ["links", "summary"],
     "inputs": {"args": ["published"]}},
]  # fmt: skip
RETRIES: Final = "retries: {max: 1, backoff_base_sec: 1}\n"

DEEP: Final = 10
"""So many tasks, each of which waits for the one before."""

MARKUP: Final[dict[str, str]] = {
    "script": "<script>document.title='owned';fetch('https://evil.example/')</script>",
    "image": "<img src=https://evil.example/x.png onerror=alert(1)>",
    "quote": "\"'><svg onload=alert(1)><style>@import url(https://evil.example/a.css)</style>",
    "closing": "</title></textarea></pre></script><iframe srcdoc='<script>alert(1)</script>'>",
    "link": "javascript:alert(1) https://evil.example [click](javascript:alert(1)) <a href=//evil.example>x</a>",
    "template": "{{ 7*7 }}{% include 'base.html' %}${7*7}",
    "entity": "&lt;script&gt;alert(1)&lt;/script&gt;&#x202e;",
}
"""Texts that a page would obey if it trusted what it shows."""


class Furnished:
    """The content of a workspace: ids by which pages are reached."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.frames = station.folder / "frames"
        self.frames.mkdir()

    def everything(self) -> None:
        """All of it, in the order of a day."""
        station = self.station
        station.pmagent("oa", "snapshot")
        station.pmagent("boot", "oa")
        self.runs()
        self.audit()
        station.pmagent("pause", "--operator", APPROVING, "--reason", "A colleague is at the machine")
        station.pmagent("resume", "--operator", APPROVING)
        self.proposals()

    def runs(self) -> None:
        """A run with a task of each end."""
        in_workspace(self.station.workspace, json.dumps(PLAN), RETRIES)
        self.station.process("run", "Check the docs and publish them", "--plan", self._plan(PLAN), expect=1)

    def audit(self) -> None:
        """An audit of two criteria."""
        self.station.process(*Sources(self.station.folder).quick)

    def proposals(self) -> None:
        """One rejected, one executed, and one open, with a frame."""
        station = self.station
        picture(self.frames / "screen.png")
        station.settings(frames=str(self.frames))
        station.mode("OBSERVE", "SUGGEST")
        station.pmagent("pla", "observe", "--operator", ASKING)
        station.proposed("type: ls -la", "--why", "to see what is there")
        station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "the wrong window has the focus")
        station.mode("EXECUTE")
        station.pmagent("pla", "arm", "--operator", ASKING)
        shown = station.proposed("type: echo hello")
        station.pmagent("pla", "approve", "--operator", APPROVING, "--digest", shown["digest"])
        station.proposed('type: "df -h /var\\n"', "--why", "the disk may be full: the last run stopped in /var")

    def hostile(self) -> None:
        """Hostile text wherever somebody can write any: intents, arguments, outputs, names, reasons."""
        station = self.station
        texts = {**{name: text[:990] for name, text in CORPUS.items()}, **MARKUP}
        tasks = [_hostile(number, name, text) for number, (name, text) in enumerate(texts.items())]
        for before, task in itertools.pairwise(tasks[:DEEP]):
            task["depends_on"] = [before["task_id"]]
        in_workspace(station.workspace, "", RETRIES)
        everything = "".join(MARKUP.values()) + CORPUS["bidi"] + CORPUS["colour"]
        station.process("run", everything[:1500].replace("\x00", ""), "--plan", self._plan(tasks))
        station.mode("OBSERVE", "SUGGEST")
        for name, text in MARKUP.items():
            station.pmagent("pla", "propose", "type: x", "--operator", ASKING, "--why", f"{name} {text}")
            station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", text)
        station.pmagent("pla", "propose", f"type: {MARKUP['closing']}", "--operator", ASKING, "--why", everything[:400])
        assert self._deepest()[1] > DEEP * 4, "its page is wide, if each step is indented"
        station.pmagent("pause", "--operator", APPROVING, "--reason", everything[:400])
        station.pmagent("resume", "--operator", APPROVING, "--reason", everything[:400])

    def pages(self) -> list[str]:
        """The address of every page there is something on, one of each kind."""
        station = self.station
        run = station.document("runs")["runs"][0]["run_id"]
        tasks = [task["task_id"] for task in station.document("runs", run)["tasks"]]
        audits = station.document("audits")["audits"]
        proposal = station.document("pla", "list")["proposals"][0]["proposal_id"]
        session = station.document("pla", "status")["session"]["session_id"]
        return [
            "/", "/approvals", f"/approvals/{proposal}", "/runs", f"/runs/{run}", f"/runs/{run}/tasks/{tasks[0]}",
            f"/runs/{run}/tasks/{tasks[-3]}", "/audits", *(f"/audits/{audit['audit_id']}" for audit in audits[:1]),
            "/sessions", f"/sessions/{session}", "/log?n=20", f"/log/{self._deepest()[0]}", "/integrity", "/help",
            f"/runs/{run}?tab=graph", f"/runs/{run}?tab=tasks", f"/runs/{run}?tab=artifacts", self._file(run),
            f"/runs/compare?a={station.document('runs')['runs'][-1]['run_id']}&b={run}", "/search?q=docs", "/settings",
            "/workspaces", "/no-such-page",
        ]  # fmt: skip

    def _file(self, run: str) -> str:
        """The page of a file that the run left."""
        (task, *_) = [one["task_id"] for one in self.station.document("runs", run)["tasks"]]
        left = [line["data"]["artifacts"] for line in self.station.lines("--type", "task.exited", "--correlation", run)]
        first = next((one for files in left for one in files), None)
        if first is None:
            return f"/runs/{run}/tasks/{task}"
        return f"/runs/{run}/view/{first['checksum']}/{quote(first['path'].rpartition('/')[2], safe='')}"

    def _deepest(self) -> tuple[int, int]:
        """The event before the longest chain that ends with one of which nothing came, and how long that is."""
        told = self.station.pmagent("log", "tail", "--after", "0", "-n", "all", "--format", "json").out.splitlines()
        causes = {event["position"]: event.get("causation") or 0 for event in map(msgspec.json.decode, told)}
        depths: dict[int, int] = {0: 0}
        for position in sorted(causes, reverse=True):
            depths.setdefault(position, 0)
            depths[causes[position]] = max(depths.get(causes[position], 0), depths[position] + 1)
        del depths[0]
        deepest = max(depths, key=depths.__getitem__)
        return deepest, depths[deepest]

    def _plan(self, tasks: list[dict[str, Any]]) -> str:
        path = self.station.workspace / "plan.json"
        path.write_bytes(msgspec.json.encode(tasks))
        return str(path)


def _hostile(number: int, name: str, text: str) -> dict[str, Any]:
    script = "printf '%s\\n' \"$1\"; printf '%s\\n' \"$1\" >&2; echo x > \"$ARTIFACTS/$2\""
    file = "".join(char for char in text[:40] if char not in "/\x00\n") or "x"
    return {
        "task_id": f"t{number}-{name.replace('_', '-')}", "intent": text[:500] or "x", "tools": ["sh"],
        "inputs": {"args": ["-c", script, "sh", text.replace("\x00", ""), file]}, "constraints": {"max_retries": 0},
    }  # fmt: skip


def picture(path: Path, width: int = 320, height: int = 180) -> None:
    """A picture of a screen: a bar above, lines of text below it, as grey on grey."""
    rows = []
    for y in range(height):
        text = y > 24 and y % 12 < 6
        rows.append(b"\x00" + bytes(90 if y < 16 else 200 if text and 12 < x < 240 - y % 5 * 30 else 30
                                    for x in range(width)))  # fmt: skip
    header = width.to_bytes(4) + height.to_bytes(4) + bytes([8, 0, 0, 0, 0])
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )  # fmt: skip
