"""``pmagent import``: transcripts of sessions that no hook told of become facts, marked as imported (docs/guests.md).

Nothing is judged, and none of these sessions counts as gated. A transcript is read as a stream, and all that enters the
log is masked like any other fact; of an output only the beginning does.
A fact that the log has already, live or imported, is left out: a second import adds what was written since.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import anyio.to_thread
import msgspec

from pmagent.actors.core.intake import Intake
from pmagent.contracts.guests import (
    NAME_CHARS_MAX,
    PATH_CHARS_MAX,
    GuestCallAsked,
    GuestCallEnded,
    GuestFact,
    GuestSessionEnded,
    GuestSessionStarted,
)
from pmagent.contracts.payload import typed
from pmagent.events.errors import PmagentError
from pmagent.events.event import Draft
from pmagent.events.reader import events_of_types
from pmagent.events.store import LogStore
from pmagent.guests import transcripts
from pmagent.guests.dialects import Asked, Ended, Finished, Started
from pmagent.guests.drafting import INLINE_BYTES
from pmagent.guests.facts import look
from pmagent.guests.gate import Gate
from pmagent.guests.keys import digest_of, session_of
from pmagent.guests.policy import cedar_files
from pmagent.guests.recording import stored_of
from pmagent.guests.transcripts import Entry
from pmagent.service.answer import Answer, understood
from pmagent.service.host import Host

DRAFTS_AT_ONCE: Final = 200
SECONDS_MAX: Final = 86_400.0
OUTPUT_CHARS: Final = 1000
IMPORT: Final = "import"
"""The actor of imported facts."""

Key = tuple[str, str, str, str]
"""Key by which a transcript's fact is the same one: type, session, agent, call."""


class BadImport(PmagentError, exit_code=2):
    """There is nothing that could be imported."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    harness: Literal["claude", "codex", "gemini"]
    path: str


class _Stored(msgspec.Struct):
    """The fields of a fact's payload that make it the same."""

    call: str = ""
    agent: str = ""
    facts: _Facts | None = None
    blob: msgspec.Raw | None = None


class _Facts(msgspec.Struct):
    agent: str = ""


class Found(msgspec.Struct):
    """Result of an import: files, and, of what is new, sessions and calls; lines that are not understood."""

    files: int = 0
    sessions: int = 0
    calls: int = 0
    not_understood: int = 0


def seconds(_: object) -> float:
    """So long an import may take."""
    return SECONDS_MAX


async def perform(host: Host, arguments: dict[str, Any]) -> Answer:
    """Import, and answer with what is new. Raises BadImport, OSError."""
    wish = understood(arguments, _Arguments, BadImport, "this is no import", "pmagent help import")
    path = Path(wish.path)
    importer = await anyio.to_thread.run_sync(
        Importer, wish.harness, str(host.layout.workspace), host.runtime.intake, host.resources[Gate].key(host),
        host.layout.store,
    )  # fmt: skip
    drafts = importer.drafts(path)
    while batch := await anyio.to_thread.run_sync(lambda: list(islice(drafts, DRAFTS_AT_ONCE))):
        await asyncio.gather(*map(host.runtime.append_draft, batch))
    found = msgspec.to_builtins(importer.found)
    return Answer(document={"harness": wish.harness, "path": str(path), **found})


class Importer:
    """Makes drafts of what transcripts tell and the log ``store`` does not know; blocking."""

    def __init__(
        self, harness: Literal["claude", "codex", "gemini"], root: str, intake: Intake, key: bytes, store: LogStore
    ) -> None:
        self.found = Found()
        self._harness = harness
        self._root = root
        self._intake = intake
        self._key = key
        self._known = _known(store)
        self._cedar = [one for one in cedar_files(Path(root), os.environ) if os.path.lexists(one)]

    def drafts(self, path: Path) -> Iterator[Draft]:
        """Of a transcript, or all in a folder. Raises BadImport, OSError."""
        if not path.exists():
            raise BadImport(f"{path} is not there", "name a transcript, or a folder of some")
        for file in transcripts.sessions(self._harness, path):
            self.found.files += 1
            yield from self._of_file(file)

    def _of_file(self, file: Path) -> Iterator[Draft]:
        """A session is begun with its first call that is new, and ended after its last one."""
        begun: Entry | None = None
        new = 0
        for entry in transcripts.entries(self._harness, file):
            match entry.heard:
                case Started():
                    begun = entry
                case Asked() | Finished() if (moment := _moment(entry.time)) is not None:
                    fact = self._fact(entry.time, moment, entry.heard)
                    if fact is None:
                        continue
                    if begun is not None and isinstance(begun.heard, Started):
                        yield from self._began(begun.time, begun.heard)
                        begun = None
                    new += isinstance(fact, GuestCallAsked)
                    yield self._draft(fact)
                case Ended() as ended if new:
                    fact = GuestSessionEnded(**self._common(ended.session, entry.time), transcript="read", calls=new)
                    yield self._draft(fact, str(new))
                case Ended():
                    pass
                case _:
                    self.found.not_understood += 1
        self.found.calls += new

    def _began(self, time: str, heard: Started) -> Iterator[Draft]:
        fact = GuestSessionStarted(
            **self._common(heard.session, time), harness=self._harness, mode="observe", cwd=heard.cwd[:PATH_CHARS_MAX],
            version=heard.version[:NAME_CHARS_MAX], how=IMPORT,
        )  # fmt: skip
        if self._is_new(fact):
            self.found.sessions += 1
            yield self._draft(fact)

    def _fact(self, time: str, moment: datetime, heard: Asked | Finished) -> GuestFact | None:
        """The fact; None where it is known."""
        common = self._common(heard.session, time)
        call, agent = heard.call[:NAME_CHARS_MAX], heard.agent[:NAME_CHARS_MAX]
        if isinstance(heard, Finished):
            ended = GuestCallEnded(**common, call=call, tool=heard.tool[:NAME_CHARS_MAX], agent=agent, ok=heard.ok)
            return msgspec.structs.replace(ended, **self._output(heard.output)) if self._is_new(ended) else None
        key = ("guest.call_asked", common["session"], agent, call)
        if key in self._known:
            return None
        self._known.add(key)
        facts = look(
            self._harness, common["session"], agent, heard.agent_type, heard.tool, heard.tool_input, heard.server,
            heard.cwd, self._root, now=moment, cedar=self._cedar,
        )  # fmt: skip
        facts = msgspec.structs.replace(facts, branch="")  # today's says nothing of then
        return GuestCallAsked(
            **common, **self._input(heard.tool_input), call=call, facts=facts, mode="observe",
            digest=digest_of(self._key, self._harness, common["session"], heard),
        )  # fmt: skip

    def _input(self, given: dict[str, Any]) -> dict[str, Any]:
        content = msgspec.json.encode(given, order="sorted")
        if len(content) <= INLINE_BYTES:
            return {"input": given, "input_size": len(content)}
        stored = stored_of(self._intake, content)
        return {"input_sha256": stored.sha256, "input_size": stored.size, "input_kept": True}

    def _output(self, output: Any) -> dict[str, Any]:
        text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        return {"output": self._intake.masked(text)[:OUTPUT_CHARS], "output_size": len(text.encode("utf-8", "replace"))}

    def _common(self, session: str, time: str) -> dict[str, Any]:
        return {"session": session_of(session), "source": "import", "seen": time}

    def _is_new(self, fact: GuestFact) -> bool:
        key = _key(fact)
        if key in self._known:
            return False
        self._known.add(key)
        return True

    def _draft(self, fact: GuestFact, more: str = "") -> Draft:
        id = ":".join(("guest.import", *_key(fact), more))
        return self._intake.fact(fact, id, IMPORT, fact.session)


def _key(fact: GuestFact) -> Key:
    match fact:
        case GuestCallAsked():
            return "guest.call_asked", fact.session, fact.facts.agent, fact.call
        case GuestCallEnded():
            return "guest.call_ended", fact.session, fact.agent, fact.call
        case GuestSessionStarted():
            return "guest.session_started", fact.session, "", ""
    return "guest.session_ended", fact.session, "", ""


def _moment(time: str) -> datetime | None:
    """The local time of an entry; None where it does not say when it was."""
    try:
        return datetime.fromisoformat(time).astimezone() if time.endswith("Z") else None
    except ValueError:
        return None


_decode: Final = msgspec.json.Decoder(_Stored).decode


def _known(store: LogStore) -> set[Key]:
    """Sessions and calls that the log knows. Raises CorruptLog."""
    found: set[Key] = set()
    types = ("guest.call_asked", "guest.call_ended", "guest.session_started")
    with closing(store.reader()) as log:
        for stored in events_of_types(log, 1, types):
            data = _decode(stored.data)
            if data.blob is not None:  # a large payload
                data = _decode(msgspec.json.encode(typed(stored, store.blobs()).data))
            agent = data.facts.agent if data.facts is not None else data.agent
            found.add((stored.type, stored.correlation, agent, data.call))
    return found
