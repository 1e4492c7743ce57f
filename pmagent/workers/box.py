"""The process in which one attempt runs on a worker's host (``python -I -m pmagent.workers.box``).

It has no connection to the database. It ends, and its sandbox with it, at the time that it was told last, when the
worker ends, or when the worker tells it to; a thread of its own sees to that. Its output is masked.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import BinaryIO, Final, Literal

import anyio
import anyio.from_thread
import msgspec

from pmagent.actors.core.intake import GAP_MARGIN
from pmagent.actors.orchestra.running.effects import VIOLATIONS_MAX, check_workdir
from pmagent.actors.orchestra.running.sandbox_spec import OUTPUT_BYTES, absolute, spec_of
from pmagent.actors.sandbox.artifacts import Bounds, Collected, Found
from pmagent.actors.sandbox.programs import found, searched
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Outcome, SandboxRefused, SandboxSpec, SandboxUnavailable
from pmagent.contracts.orchestra import PATH_CHARS_MAX
from pmagent.contracts.orchestra_events import CONTACTS_MAX
from pmagent.events.redact import Redactor
from pmagent.service.secrets import known_secrets
from pmagent.workers.settings import Sizes
from pmagent.workers.wish import FILES, STDOUT_END, Left, Told, Wish, boottime

PIECE_BYTES: Final = 64 * 1024
LOOK_SECONDS: Final = 0.2
_MIB: Final = 2**20
_STREAMS: Final = ("stdout", "stderr")


class Begin(msgspec.Struct, tag=True):
    """The first word to a box: run ``wish`` in ``folder``, which holds ``workspace`` and ``inputs``, with programs of
    this list alone. ``until``: ns of CLOCK_BOOTTIME."""

    wish: Wish
    folder: str
    tools: list[str]
    sizes: Sizes
    until: int


class Until(msgspec.Struct, tag=True):
    """It may run until then."""

    until: int


class End(msgspec.Struct, tag=True):
    """It is to end its sandbox, and tell."""


class Out(msgspec.Struct, tag=True):
    """Its output: a piece of a part (see ``pmagent.workers.wish``)."""

    part: int
    content: bytes


class Ended(msgspec.Struct, tag=True):
    """Its last word."""

    told: Told


Word = Begin | Until | End
Said = Out | Ended


def framed(word: msgspec.Struct) -> bytes:
    """A word, with its length ahead."""
    content = msgspec.msgpack.encode(word)
    return len(content).to_bytes(4, "big") + content


def _words(stream: BinaryIO) -> Iterator[Word]:
    while len(head := stream.read(4)) == 4:
        content = stream.read(int.from_bytes(head, "big"))
        yield msgspec.msgpack.decode(content, type=Word)


class _Watch:
    """The thread that obeys the worker, and the clock. It needs no event loop, and ends the process whatever that does:
    the sandbox dies with it."""

    def __init__(self, words: Iterator[Word], until: int) -> None:
        self.until = until
        self.end = anyio.CancelScope()
        self._words = words

    def start(self, loop: anyio.from_thread.BlockingPortal) -> None:
        """Begin to listen and to look."""
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        threading.Thread(target=self._look, daemon=True).start()

    def _listen(self, loop: anyio.from_thread.BlockingPortal) -> None:
        for word in self._words:
            if isinstance(word, Until):
                self.until = word.until
            else:
                loop.call(self.end.cancel)
        os._exit(75)  # the worker has ended

    def _look(self) -> None:
        while boottime() < self.until:
            time.sleep(min(LOOK_SECONDS, max(0.0, (self.until - boottime()) / 1e9)))
        os._exit(75)


class _Stream:
    """One stream on its way out: masked, and held back by as much as is left out where the stream turns out too long,
    for there may be half a secret."""

    def __init__(self, redactor: Redactor, part: int) -> None:
        self._redactor = redactor
        self._part = part
        self._masking = redactor.stream()
        self._taken = 0
        self._held = bytearray()

    def hear(self, chunk: bytes) -> None:
        """More of it."""
        kept = chunk[: OUTPUT_BYTES - self._taken]
        self._taken += len(kept)
        if kept:
            self._held += self._masking.feed(kept)
            if len(self._held) > GAP_MARGIN + PIECE_BYTES:
                self._say(len(self._held) - GAP_MARGIN)

    def close(self, content: bytes, total: int) -> bool:
        """The end: ``content`` is what the sandbox has kept of ``total`` bytes. Whether some is missing."""
        rest = content[OUTPUT_BYTES:]
        if total <= len(content):
            self._held += self._masking.feed(rest) + self._masking.finish()
            self._say(len(self._held))
            return False
        _say_all(self._part + STDOUT_END, self._redactor.content(rest)[GAP_MARGIN:])
        return True

    def _say(self, size: int) -> None:
        _say_all(self._part, bytes(self._held[:size]))
        del self._held[:size]


def _say_all(part: int, content: bytes) -> None:
    for start in range(0, len(content), PIECE_BYTES):
        _say(Out(part, content[start : start + PIECE_BYTES]))


def _say(word: Said) -> None:
    left = memoryview(framed(word))
    while left:
        left = left[os.write(1, left) :]


async def _run(begin: Begin, words: Iterator[Word]) -> Told:
    watch = _Watch(words, begin.until)
    async with anyio.from_thread.BlockingPortal() as portal:
        watch.start(portal)
        try:
            told = await _attempt(begin, watch)
        except (SandboxRefused, SandboxUnavailable) as refused:
            told = Told(refused=refused.message[:2000], mend=refused.hint[:2000])
    return told


async def _attempt(begin: Begin, watch: _Watch) -> Told:
    redactor = Redactor(known_secrets(os.environ))
    spec = _spec(begin)
    streams = {name: _Stream(redactor, part) for part, name in enumerate(_STREAMS)}

    def heard(name: Literal["stdout", "stderr"], chunk: bytes) -> None:
        streams[name].hear(chunk)

    outcome: Outcome | None = None
    with watch.end:
        outcome = await run(spec, heard)
    if outcome is None:
        return Told(stopped="ended")
    contents = ((outcome.stdout, outcome.stdout_bytes), (outcome.stderr, outcome.stderr_bytes))
    cut = [part for part, name in enumerate(_STREAMS) if streams[name].close(*contents[part])]
    files, skipped = _files(spec.artifacts, redactor, begin.sizes)
    return Told(
        exit_code=outcome.exit_code, signal=outcome.signal, timed_out=outcome.timed_out, exceeded=outcome.exceeded,
        seconds=outcome.seconds, totals=(outcome.stdout_bytes, outcome.stderr_bytes), cut=cut, files=files,
        skipped=[redactor.text(one)[:2000] for one in skipped[:VIOLATIONS_MAX]], unenforced=list(outcome.unenforced),
        contacts=list(outcome.contacts[:CONTACTS_MAX]),
        contacts_dropped=outcome.contacts_dropped,
    )


def _spec(begin: Begin) -> SandboxSpec:
    """The rights that the run's configuration gives the attempt, with the programs and within the sizes of this host.
    Raises SandboxRefused, OSError."""
    wish, sizes, root = begin.wish, begin.sizes, f"{begin.folder}/workspace"
    readable = absolute(root, wish.config.security.fs.allow_read)
    program = wish.assigned.assignment.tools[0]
    programs = found(begin.tools, root, searched(os.environ), readable)
    if program not in {one.name for one in programs}:
        raise SandboxRefused(f"{program} is not installed on this host", "install it there, or use other labels")
    artifacts = f"{begin.folder}/artifacts"
    os.mkdir(artifacts, 0o700)
    inputs = f"{begin.folder}/inputs" if wish.inputs is not None else ""
    made = spec_of(root, wish.config, wish.assigned, wish.asked, artifacts, inputs, (), programs)
    if made.workdir != root:
        check_workdir(root, made)
    if made.fs != "read-only":
        raise SandboxRefused("fs: rw changes the workspace, which stays on its own host")
    limits = made.limits
    memory = sizes.memory_mib * _MIB
    return msgspec.structs.replace(made, limits=msgspec.structs.replace(
        limits, seconds=min(limits.seconds, sizes.seconds), processes=min(limits.processes, sizes.processes),
        memory_bytes=min(limits.memory_bytes, memory), total_memory_bytes=min(limits.total_memory_bytes, memory),
        artifact_bytes=min(limits.artifact_bytes, sizes.output_mib * _MIB),
    ))  # fmt: skip


def _files(folder: str, redactor: Redactor, sizes: Sizes) -> tuple[list[Left], list[str]]:
    """Say each file that it left, masked; their names, and what was not kept."""
    collected = Collected(folder, Bounds(total_bytes=sizes.output_mib * _MIB))
    files: list[Left] = []
    notes: list[str] = []
    with closing(_each(collected)) as following:
        for file in following:
            path = redactor.text(file.path)
            if len(path) > PATH_CHARS_MAX or path.partition("/")[0] in _STREAMS:
                notes.append(f"{path[:100]}: the name is too long, or that of the task's output")
                continue
            part, masking, size = FILES + len(files), redactor.stream(), 0
            while chunk := file.content.read(PIECE_BYTES):
                masked = masking.feed(chunk)
                size += len(masked)
                _say_all(part, masked)
            rest = masking.finish()
            _say_all(part, rest)
            files.append(Left(path, size + len(rest)))
    return files, [*notes, *collected.skipped]


def _each(collected: Collected) -> Generator[Found, None, None]:
    yield from collected


def main() -> None:
    """Run one attempt as told on standard input, and tell on standard output."""
    words = _words(sys.stdin.buffer)
    begin = next(words)
    assert isinstance(begin, Begin), "the first word"
    told = anyio.run(_run, begin, words)
    _say(Ended(told))
    os._exit(0)  # a thread of ours still listens


if __name__ == "__main__":
    main()
