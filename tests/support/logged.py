"""Workspaces with logs for tests of commands; and the commands, in this process, in an environment of their own."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from events.event import Draft, Event, Kind
from events.log import open_log
from events.segment_store import SEGMENT_BYTES
from pmagent.cli.app import run
from pmagent.cli.output import Output


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one document on stdout."""
        return msgspec.json.decode(self.out)

    def lines(self) -> list[str]:
        """The lines on stdout."""
        return self.out.splitlines()


def pmagent(workspace: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Done:
    """Run ``pmagent ARGUMENTS`` on ``workspace``; nothing of this process's environment is seen by it."""
    out, err = io.BytesIO(), io.BytesIO()
    given = {"PMAGENT_WORKSPACE": str(workspace), **(environ or {})}
    code = run(list(arguments), Output(out, err, given), given)
    return Done(code, out.getvalue().decode(), err.getvalue().decode())


def note(
    number: int, data: Any = None, *, type: str = "toy.noted", actor: str = "toy", correlation: str = "run-1",
    causation: int = 0, id: str = "", decision: bool = False,
) -> Draft:
    """A draft of an event; its data is ``{"n": number}`` unless given."""
    raw = msgspec.json.encode({"n": number} if data is None else data)
    kind: Kind = "decision" if decision else "fact"
    return Draft(type, None, raw, id or f"f{number}", actor, correlation, causation, kind)


def write_log(workspace: Path, drafts: Sequence[Draft], segment_bytes: int = SEGMENT_BYTES) -> list[Event]:
    """Append ``drafts`` to the workspace's log (begun if there is none), each durable before the next."""

    async def append() -> list[Event]:
        async with open_log(folder, segment_bytes) as log:
            return [await log.append(draft) for draft in drafts]

    folder = workspace / ".pmagent" / "log"
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    return anyio.run(append)


def segments(workspace: Path) -> list[Path]:
    """The log's segment files, in order."""
    return sorted((workspace / ".pmagent" / "log").glob("*.jsonl"))


def flip(path: Path, offset: int) -> None:
    """Change one bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(raw))
