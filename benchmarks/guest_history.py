"""The hook as a whole process; importing transcripts; judging what a log holds by another policy.

The hook asks a real daemon, which has recorded the call, durably, before it answers; beside it start an interpreter
that does nothing, and nah, a published hook that judges by itself and asks no daemon, in the same turns. The import
stands beside decoding each line of the transcripts and masking all that was decoded. Lines and their lengths are those
of a session of 20 calls that Claude Code 2.1.330 recorded: a call returns 3.5 kB, and two copies of requests of 22 kB
each stand beside it. What-if runs in a process of its own each time, which has judged nothing before; its policy has 50
rules. In one log every call is another one; in the other, every second one does again what the one before it did, with
another text: an agent edits a file several times, and runs the same tests again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import msgspec

from benchmarks.guests import _daemon
from benchmarks.harness import Bench, Row, Spread, alternate, child
from pmagent.events.redact import Redactor
from pmagent.guests import hook
from pmagent.guests.policy import policy_of, read_policy, rules_of
from pmagent.guests.what_if import what_if
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from pmagent.workspace.surfaces import init_workspace
from pmagent.workspace.trust import accept

PEER = "nah.hook"
PYTHON = os.path.realpath(sys.executable)
PAYLOAD = {
    "session_id": "bench", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
    "tool_input": {"command": "git status --short | head -n 5"},
}  # fmt: skip
WORDS = ("alpha", "beta", "gamma", "delta", "def", "return", "import", "self", "==", "0", "True", "\n", "    ", "value")


def run(bench: Bench) -> list[Row]:
    """All of them."""
    return [*_hook(bench), *_history(bench)]


def _hook(bench: Bench) -> list[Row]:
    with _daemon(bench.folder) as (workspace, _):
        end = ("enforce", "0", str(Layout(workspace).home))
        words = [PYTHON, "-I", "-S", hook.__file__, "claude", "PreToolUse", *end]
        begin = [PYTHON, "-I", "-S", hook.__file__, "claude", "SessionStart", *end]
        began = {"session_id": "bench", "cwd": str(workspace), "source": "startup"}
        subprocess.run(begin, input=json.dumps(began).encode(), capture_output=True, check=True)
        line = json.dumps({**PAYLOAD, "cwd": str(workspace)}).encode()
        begins = ["SessionStart" if word == "PreToolUse" else word for word in words]
        subprocess.run(begins, input=line, capture_output=True, check=True)

        def asking() -> float:
            began = time.perf_counter()
            done = subprocess.run(words, input=line, capture_output=True, check=False)
            took = time.perf_counter() - began
            assert b'"allow"' in done.stdout, done
            return took * 1e3

        def nothing() -> float:
            began = time.perf_counter()
            subprocess.run([PYTHON, "-I", "-S", "-c", "pass"], input=line, capture_output=True, check=True)
            return (time.perf_counter() - began) * 1e3

        def alone() -> float:
            began = time.perf_counter()
            done = subprocess.run([sys.executable, "-m", PEER], input=line, capture_output=True, check=True, env=home)
            assert b'"allow"' in done.stdout, done
            return (time.perf_counter() - began) * 1e3

        home = {**os.environ, "HOME": str(bench.folder / "peer")}
        has_peer = find_spec(PEER.partition(".")[0]) is not None
        turns = bench.count(200, 3)
        asked, empty, *others = alternate(turns, asking, nothing, *([alone] if has_peer else []))
    figure, limit = Spread.of(asked), Spread.of(empty)
    peer = Spread.of(others[0]) if others else None
    ratio = figure.median / limit.median
    return [
        Row(
            what="guests: the hook as a whole process, with the daemon's durable answer", figure=figure, unit="ms",
            beside="python -I -S -c pass", limit=limit, ratio=ratio, target="<= 2.0 x in the median",
            reached=ratio <= 2.0,
        ),
        Row(
            what="guests: the same, beside a hook that asks no daemon and records nothing durably", figure=figure,
            unit="ms", beside=f"nah {version('nah')}" if peer else "(nah is not installed)", limit=peer,
            ratio=figure.median / peer.median if peer else None, target="<= 1.0 x in the median",
            reached=figure.median <= peer.median if peer else None,
        ),
    ]  # fmt: skip


def _history(bench: Bench) -> list[Row]:
    os.environ["XDG_STATE_HOME"] = str(bench.folder / "history-state")
    folder = bench.folder / "transcripts"
    calls, each = bench.count(2_000, 40), bench.count(50, 20)
    for number in range(calls // each):
        _transcript(folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl", number, each)
    workspaces = iter(range(1000))

    def importing() -> float:
        workspace = bench.folder / f"history-{next(workspaces)}"
        subprocess.run(["git", "init", "-q", "-b", "main", str(workspace)], check=True)
        init_workspace(workspace)
        accept(workspace)
        took = _processor(lambda: call(workspace, "guests.import", {"harness": "claude", "path": str(folder)}))
        return calls / took

    def alone() -> float:
        redactor = Redactor([])

        def all_lines() -> None:
            for path in sorted(folder.iterdir()):
                with path.open("rb") as file:
                    for line in file:
                        redactor.value(msgspec.json.decode(line))

        return calls / _processor(all_lines)

    imported, raw = (Spread.of(found) for found in alternate(bench.runs, importing, alone))
    ratio = imported.median / raw.median
    again, others = (_logged(bench, share) for share in (2, 1))
    alike, rate = (Spread.of(found) for found in alternate(
        bench.runs, *(lambda one=one: child("guest_history", one)["rate"] for one in (again, others))
    ))  # fmt: skip
    return [
        Row(
            what="guests: import of transcripts", figure=imported, unit="calls/s of processor time",
            beside="JSON decoder and redactor alone", limit=raw, ratio=ratio, target=">= 0.8 x", reached=ratio >= 0.8,
        ),
        Row(
            what="guests: what-if, 50 rules, a new process, every second call like the one before it", figure=alike,
            unit="calls/s", target=">= 50,000/s", reached=alike.median >= 50_000,
            note=f"with reading and checking the log; {rate.median:,.0f}/s where each call is another one",
        ),
    ]  # fmt: skip


def _logged(bench: Bench, share: int) -> Path:
    """A workspace into which sessions were imported; of ``share`` calls in a row all but one do the same again."""
    folder, workspace = bench.folder / f"transcripts-{share}", bench.folder / f"history-by-{share}"
    for number in range(bench.count(200, 2)):
        _transcript(folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl", number, 50, share, copies=False)
    subprocess.run(["git", "init", "-q", "-b", "main", str(workspace)], check=True)
    init_workspace(workspace)
    accept(workspace)
    call(workspace, "guests.import", {"harness": "claude", "path": str(folder)})
    return workspace


def _what_if(workspace: Path) -> float:
    """Calls a second, by the clock."""
    rules = "version: 1\nallow:\n" + "".join(f"  - Bash(tool{n} run *)\n" for n in range(25))
    rules += "deny:\n" + "".join(f"  - Edit(./area{n}/**)\n" for n in range(25))
    layer = rules_of(rules, "project", "bench", "/root")
    policy = policy_of([layer if one.name == "project" else one for one in read_policy(workspace).layers])
    began = time.perf_counter()
    found = what_if(Layout(workspace).store, policy)
    return found.calls / (time.perf_counter() - began)


def _processor(function: Callable[[], object]) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def _transcript(path: Path, number: int, calls: int, share: int = 1, *, copies: bool = True) -> None:
    """A session as Claude Code writes it: each call, its result, and a text between them; ``copies``: of requests,
    too, of which nothing gets into a log."""
    chance = random.Random(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": path.stem, "cwd": "/work/project", "version": "2.1.330", "gitBranch": "main"}
    with path.open("w") as file:
        for n in range(calls):
            call, m = f"toolu_{number}_{n}", n - n % share
            line = f"tool{m % 30} run --case {number}-{m}"
            given: dict[str, object] = {"command": line, "description": _text(chance, 6)}
            name = "Bash"
            if m % 3 == 0:
                name, given = "Edit", {"file_path": f"/work/project/area{m % 40}/m{number}_{m}.py",
                                       "old_string": _text(chance, 40), "new_string": _text(chance, 60)}  # fmt: skip
            time = {"timestamp": f"2026-11-{1 + number % 28:02}T10:{n % 60:02}:00.000Z", "uuid": f"{number}-{n}"}
            output = _text(chance, 620)
            copied: dict[str, object] = {"text": _text(chance, 3900)}
            made: dict[str, object] = {"type": "tool_use", "id": call, "name": name, "input": given}
            result: dict[str, object] = {
                "type": "tool_result", "tool_use_id": call, "content": output, "is_error": False,
            }  # fmt: skip
            rows: list[dict[str, object]] = [
                {"type": "last-prompt", "lastPrompt": _text(chance, 40)},
                {"type": "api-request", "params": _text(chance, 160)},
                {"type": "assistant", "message": _message("assistant", {"type": "text", "text": _text(chance, 50)})},
                {"type": "assistant", "usage": _text(chance, 120), "message": _message("assistant", made)},
                {"type": "user", "message": _message("user", result), "toolUseResult": {"stdout": output}},
                {"type": "api-request-blob", "message": _message("user", copied)},
                {"type": "api-request-blob", "message": _message("user", copied)},
            ]
            rows = rows if copies else [row for row in rows if not str(row["type"]).startswith("api-request")]
            file.writelines(json.dumps({**row, **time, **common}) + "\n" for row in rows)


def _message(role: str, part: dict[str, object]) -> dict[str, object]:
    return {"role": role, "content": [part]}


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


if __name__ == "__main__":
    print(json.dumps({"rate": _what_if(Path(sys.argv[1]))}))
