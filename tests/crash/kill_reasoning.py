"""Runs of programs to be killed; each is a process of its own, made by fork so that many rounds take seconds.

Started by ``test_reasoning_kill.py`` as ``python -m tests.crash.kill_reasoning WORKSPACE``. For each number on stdin a
process asks for one run after another, rules and models, until it is killed at a moment drawn from the number: in even
ones anywhere, in odd ones after its first result. In each fourth it kills itself, when it is durable that it asks a
model: however slow the machine is, that is in the middle of a run. One line on stdout says how it ended, which envelope
it asked for last, and the last that it was told the result of, each with the SHA-256 of the result (``-``: it was told
none).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from pmagent.actors.kernel import reader
from pmagent.actors.kernel.surfaces import BOOTSTRAP, PATHS, REALITY, SSOT
from pmagent.contracts.reasoning import PAYLOADS, PROGRAM_IDS, ReasoningEnvelope, ReasoningResult
from pmagent.events.event import Event
from pmagent.oa.reasoning import build_envelope, run
from pmagent.replay.areas.models import PERMITTING
from pmagent.service.host import Host
from tests.support.forked import Fork, serve
from tests.support.reasoning import GOALS


def envelope(workspace: Path, number: int, n: int) -> ReasoningEnvelope:
    """Envelope ``n`` of round ``number``: the same whoever makes it."""
    program = PROGRAM_IDS[n % len(PROGRAM_IDS)]
    surfaces = {"bootstrap": BOOTSTRAP, "ssot_index": SSOT, "reality_summary": REALITY}
    kernel = {key: json.loads((workspace / PATHS[name]).read_text()) for key, name in surfaces.items()}
    return build_envelope(
        program, GOALS[program], {"mode": "NORMAL", "oa_state": {}, **kernel}, {},
        envelope_id=f"00000000-0000-4000-8000-{number:08d}{n:04d}", timestamp="2026-11-21T12:00:00Z",
    )


def answered(workspace: Path, given: ReasoningEnvelope, n: int) -> ReasoningResult:
    """Run it; every second one by a model that permits what can be permitted."""
    more: dict[str, Any] = {}
    if n % 2:
        answer = {**PERMITTING[PAYLOADS[given.program_id].__name__], "rationale": "all is green"}
        model = GenericFakeChatModel(messages=iter([AIMessage(json.dumps(answer))]))
        more = {"engine": "langchain", "model": model, "fallback": True}
    return run(given, workspace=workspace, **more)


def digest(result: ReasoningResult) -> str:
    """SHA-256 of a result."""
    return hashlib.sha256(msgspec.json.encode(result, order="sorted")).hexdigest()


def cuts_itself_off(number: int) -> bool:
    """Whether the process of this round kills itself."""
    return number % 4 == 0


hear = Host.hear


def deadly(host: Host, events: Sequence[Event], sums: Sequence[str]) -> None:
    """A host's hearing of what is durable, up to the first call of a model."""
    if any(event.type == "model.call_requested" for event in events):
        os.kill(os.getpid(), signal.SIGKILL)
    hear(host, events, sums)


def live(workspace: Path, number: int, told: int) -> None:
    """Ask until killed."""
    reader.QUIET_S = 0.0  # nobody writes surfaces here, and a process that waits is not worth killing
    if cuts_itself_off(number):
        Host.hear = deadly  # type: ignore[assignment, method-assign]
    os.write(told, b"began\n")
    for n in range(1000):
        given = envelope(workspace, number, n)
        os.write(told, f"{n} -\n".encode())
        os.write(told, f"{n} {digest(answered(workspace, given, n))}\n".encode())


def play(workspace: Path, line: str) -> str:
    """Fork, kill, and say what was told last and how it ended."""
    number = int(line)
    asker = Fork(partial(live, workspace, number))
    asker.has_reported(1)
    if not cuts_itself_off(number):
        if number % 2:
            asker.has_reported(3)  # began, asked, answered
        asker.kill(random.Random(number).random() * 0.2)
    code, lines = asker.end()
    asked = lines[1:]
    results = [one for one in asked if not one.endswith(" -")]
    return f"{code} {(asked or ['0 -'])[-1]} {(results or ['0 -'])[-1]}"


if __name__ == "__main__":
    serve(partial(play, Path(sys.argv[1])))
