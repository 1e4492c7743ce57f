"""Attempts, performed: a task's program in its sandbox, and what it left, kept (docs/design.md §14.6, §14.8).

All that an attempt writes on the host lies in a folder of its own below ``.pmagent/tasks``, which is gone when it ends.
Output and artifacts go into the blob store, masked; the run's folder is made from there.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.checks.text import plain
from pmagent.actors.core.actor import Io, StoredBlob
from pmagent.actors.orchestra.running.artifact_paths import without_clashes
from pmagent.actors.orchestra.running.sandbox_spec import (
    HIDDEN,
    OUTPUT_BYTES,
    DocumentPaths,
    absolute,
    documents_of,
    spec_of,
)
from pmagent.actors.sandbox import artifacts as found
from pmagent.actors.sandbox.artifacts import Collected, Found
from pmagent.actors.sandbox.host import SEEN_SECONDS
from pmagent.actors.sandbox.programs import add_line, check_unchanged, git_folder, hidden_anew, lacking
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Outcome, SandboxRefused, SandboxSpec, SandboxUnavailable, within
from pmagent.contracts.orchestra import PATH_CHARS_MAX, UNENFORCED, Artifact, NetContact, Program
from pmagent.contracts.orchestra_events import (
    CONTACTS_MAX,
    LAST_LINES_MAX,
    MEND_CHARS_MAX,
    Captured,
    RunRequested,
    TaskAssigned,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.events.event import Event
from pmagent.events.evidence import external_evidence
from pmagent.events.tree import LeadsOut, Tree

FOLDER: Final = f"{HIDDEN}/tasks"
"""Where the folders of attempts lie, in the workspace."""

STREAMS: Final = ("stdout", "stderr")
"""Artifacts that every attempt has: what it wrote."""

NOT_RUN: Final = (126, 127)
"""Exit codes by which shells, and the programs that start others, say that a program could not be run, or was not
found. Another attempt changes nothing."""

LINE_CHARS_MAX: Final = 500
PATH_SHOWN: Final = 100
REFUSALS_MAX: Final = 3
VIOLATIONS_MAX: Final = 100
"""So many things that a tool made and may not are told by name."""
SIMULATED: Final = b"[dry run] nothing was started\n"
_CHUNK: Final = 256 * 1024
_REQUESTS_KEPT: Final = 64


class Attempts:
    """The performer of ``task.attempt_requested``. Remembers the requests of runs that it has read, and that a
    workspace's blobs hold what the simulated tool writes, always the same, and what most tools write to stderr:
    nothing."""

    def __init__(self) -> None:
        self._requests: OrderedDict[tuple[str, int], RunRequested] = OrderedDict()
        self._simulated: dict[str, Captured] = {}
        self._nothing: dict[str, Captured] = {}

    async def __call__(self, event: Event, io: Io) -> TaskExited | TaskUnstarted:
        """Run the program once. A program that cannot be started is an outcome; OSError (a full disk) is raised."""
        asked: TaskAttemptRequested = event.data
        if asked.simulated:
            return await self._dry(event, io)
        request = await self._request(asked.requested, io)
        assigned: TaskAssigned = (await io.event(asked.assigned)).data
        place = _Place(io.workspace, event.position)

        def first() -> SandboxSpec:
            """The rights, when the folder is there and the run's programs have been looked at."""
            root = place.make()
            looked = _found(root, request, assigned)
            made = spec_of(root, request.config, assigned, asked, place.artifacts, inputs, *looked)
            if made.workdir != root:
                check_workdir(root, made)
            if made.fs == "rw":
                ready(root, documents_of(root, request.config, asked.run_id))
            specs.append(made)
            return made

        specs: list[SandboxSpec] = []
        inputs = ""
        sandbox = assigned.assignment.constraints.sandbox
        try:
            if assigned.after:
                await anyio.to_thread.run_sync(place.make)
                inputs = await before(assigned, io, f"{place.folder}/inputs")
            if sandbox.fs == "rw" or sandbox.net == "allow":
                outcome = await run(await anyio.to_thread.run_sync(first))
            else:
                outcome = await run(first)
            spec = specs[0]
            stdout = await self._captured(outcome.stdout, outcome.stdout_bytes, io)
            stderr = await self._captured(outcome.stderr, outcome.stderr_bytes, io)
            exited = await kept(event, outcome, stdout, stderr, *await _collected(place, io), io)
            if outcome.exit_code not in NOT_RUN or outcome.timed_out or outcome.exceeded:
                return exited
            said = [word.strip("\"'`:,;()[]") for line in exited.last_lines for word in line.split()]
            mend = await anyio.to_thread.run_sync(lacking, (*spec.argv[1:], *said), spec.workdir, spec.visible)
            return msgspec.structs.replace(exited, again=False, mend=mend[:MEND_CHARS_MAX])
        except (SandboxRefused, SandboxUnavailable) as refusal:
            return TaskUnstarted(
                request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt,
                reason=refusal.message, mend=refusal.hint, security=False, again=False,
            )
        finally:
            if not place.gone:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(place.remove)

    async def _dry(self, event: Event, io: Io) -> TaskExited:
        """The outcome of the simulated tool of a dry run: success, and nothing done."""
        asked: TaskAttemptRequested = event.data
        key = str(io.workspace)
        if key not in self._simulated:
            self._simulated[key] = await _captured(SIMULATED, len(SIMULATED), io)
        simulated, nothing = self._simulated[key], await self._captured(b"", 0, io)
        return TaskExited(
            request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt, exit_code=0,
            signal=None, timed_out=False, exceeded="", duration_ms=0, stdout=simulated, stderr=nothing,
            last_lines=[SIMULATED.decode().strip()],
            artifacts=[Artifact(path="stdout", size_bytes=simulated.size_bytes, checksum=simulated.sha256)],
        )

    async def _captured(self, content: bytes, total: int, io: Io) -> Captured:
        key = str(io.workspace)
        if total or key not in self._nothing:
            captured = await _captured(content, total, io)
            if total:
                return captured
            self._nothing[key] = captured
        return self._nothing[key]

    async def _request(self, position: int, io: Io) -> RunRequested:
        key = (str(io.workspace), position)
        known = self._requests.get(key)
        if known is None:
            known = (await io.event(position)).data
            self._requests[key] = known
            while len(self._requests) > _REQUESTS_KEPT:
                self._requests.popitem(last=False)
        return known


def _found(root: str, request: RunRequested, assigned: TaskAssigned) -> tuple[tuple[str, ...], list[Program], str]:
    """The paths a task must not see, the run's programs that are still those that were found, and the repository of
    which the workspace is a worktree. Blocks. Raises SandboxRefused for the task's own program."""
    readable = absolute(root, request.config.security.fs.allow_read)
    programs = []
    for program in request.programs:
        try:
            check_unchanged(program, readable)
            programs.append(hidden_anew(program))
        except SandboxRefused:
            if program.name == assigned.assignment.tools[0]:
                raise
    evidence, repository = _around(int(time.monotonic() // SEEN_SECONDS), root)
    return evidence, programs, repository if root in readable else ""


@lru_cache(maxsize=8)
def _real(_second: int, workspace: Path) -> str:
    """Where the workspace is; not looked for again in the same second."""
    return os.path.realpath(workspace)


@lru_cache(maxsize=8)
def _around(_second: int, root: str) -> tuple[tuple[str, ...], str]:
    """Evidence that lies elsewhere, and the repository of a worktree; not looked for again in the same second."""
    return external_evidence(Path(root)), git_folder(root)


def check_workdir(root: str, spec: SandboxSpec) -> None:
    """Look whether the folder of the workspace that a task names is one, and can be seen. Raises SandboxRefused."""
    if not within(spec.workdir, root):
        return
    if os.path.realpath(spec.workdir) != spec.workdir or not os.path.isdir(spec.workdir):
        raise SandboxRefused(f"cwd: {spec.workdir} is no folder, or leads through a link", "correct it")
    if not any(within(spec.workdir, path) for path in spec.visible):
        raise SandboxRefused(f"cwd: {spec.workdir} is not visible to tasks", add_line(spec.workdir))


def ready(root: str, documents: DocumentPaths) -> None:
    """Make the folders of documents, so that a task that may write around them finds them there and protected. Raises
    SandboxRefused, OSError."""
    tree = Tree(Path(root))
    for folder in documents.folders:
        try:
            tree.make_folder(os.path.relpath(folder, root))
        except (LeadsOut, NotADirectoryError) as error:
            raise SandboxRefused(
                f"{folder} is to hold documents, and is no folder here", "move away what is there"
            ) from error


class _Place:
    """The folder of an attempt, ``folder``, in the workspace, whose real path is ``root``; blocking. ``gone``: it is
    not there, or not any more."""

    def __init__(self, workspace: Path, position: int) -> None:
        self.root = self.folder = ""
        self.gone = True
        self._workspace = workspace
        self._position = position

    @property
    def artifacts(self) -> str:
        """Where the program leaves files."""
        return f"{self.folder}/artifacts"

    def make(self) -> str:
        """Make it, unless it is there; returns ``root``. Raises OSError."""
        if self.gone:
            self.root = _real(int(time.monotonic() // SEEN_SECONDS), self._workspace)
            self.folder, self.gone = f"{self.root}/{FOLDER}/{self._position}", False
            try:
                os.mkdir(self.folder, 0o700)
            except FileNotFoundError:
                os.makedirs(self.folder, 0o700)
            os.mkdir(self.artifacts, 0o700)
        return self.root

    def remove(self) -> None:
        """Delete it. Raises OSError."""
        try:  # most leave nothing
            os.rmdir(self.artifacts)
            os.rmdir(self.folder)
        except OSError:
            found.remove(self.folder)
        self.gone = True


async def before(assigned: TaskAssigned, io: Io, folder: str) -> str:
    """Lay out what the tasks before have left, each in a folder of its name, without what cannot lie beside the others
    (``without_clashes``: the report tells of it); the folder of all, "" where it waited for none. Raises SandboxRefused
    for a file in which bytes are missing, unless the task takes such."""
    for name, position in assigned.after.items():
        finished: TaskFinished = (await io.event(position)).data
        await anyio.to_thread.run_sync(_make_folder, f"{folder}/{name}")
        for artifact in without_clashes("", finished.result.artifacts)[0]:
            if artifact.gap_bytes and not assigned.assignment.inputs.allow_cut:
                raise SandboxRefused(
                    f"its input {name}/{artifact.path} is cut: {artifact.gap_bytes:,} bytes are missing",
                    "let that task write less, or to files in $ARTIFACTS; or set inputs.allow_cut: true",
                )
            content = await io.blob(artifact.checksum)
            await anyio.to_thread.run_sync(_put, f"{folder}/{name}/{artifact.path}", content)
    return folder if assigned.after else ""


def _make_folder(path: str) -> None:
    Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)


def _put(path: str, content: bytes) -> None:
    """A file for a tool to read, whoever it is."""
    _make_folder(os.path.dirname(path))
    with Path(path).open("xb") as file:
        file.write(content)
    os.chmod(path, 0o444)


async def _captured(content: bytes, total: int, io: Io) -> Captured:
    """The stream's blob. Of what the sandbox has cut, ``content`` is the beginning and the end."""
    if total > len(content):
        return await captured(content[:OUTPUT_BYTES], content[OUTPUT_BYTES:], total, io)
    return await captured(content, None, total, io)


async def captured(head: bytes, tail: bytes | None, total: int, io: Io) -> Captured:
    """The blob of a stream of ``total`` bytes: ``head`` is all of it, or what lies between it and ``tail`` is
    missing."""
    if tail is not None:
        stored = await io.store_ends(head, tail, total)
    else:
        async with io.store_stream() as stream:
            await stream.write(head)
            stored = await stream.finish()
    return Captured(
        sha256=stored.sha256, size_bytes=stored.size, total_bytes=total, cut=stored.cut, gap_at=stored.gap_at,
        gap_bytes=stored.gap,
    )


async def kept(
    event: Event, outcome: Outcome, stdout: Captured, stderr: Captured, artifacts: Sequence[Artifact],
    skipped: Sequence[str], io: Io,
) -> TaskExited:  # fmt: skip
    """The attempt's outcome, when all that it left is in the blob store, as its output is. ``outcome``'s own output is
    not looked at."""
    asked: TaskAttemptRequested = event.data
    own = [
        Artifact(
            path=name, size_bytes=stream.size_bytes, checksum=stream.sha256, gap_at=stream.gap_at,
            gap_bytes=stream.gap_bytes,
        )
        for name, stream in zip(STREAMS, (stdout, stderr), strict=True)
    ]
    cut = [
        f"of {name}, {stream.gap_bytes} of {stream.total_bytes} bytes are missing"
        for name, stream in zip(STREAMS, (stdout, stderr), strict=True)
        if stream.cut
    ]
    dropped = [f"{outcome.contacts_dropped} more network requests"] if outcome.contacts_dropped else []
    return TaskExited(
        request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt,
        exit_code=outcome.exit_code, signal=outcome.signal, timed_out=outcome.timed_out, exceeded=outcome.exceeded,
        duration_ms=round(outcome.seconds * 1000), stdout=stdout, stderr=stderr,
        last_lines=await _last_lines(stderr if stderr.size_bytes else stdout, io), artifacts=[*own, *artifacts],
        notes=[*cut, *skipped, *dropped, *(f"{UNENFORCED}{what}" for what in outcome.unenforced)],
        violations=_violations(outcome.planted),
        contacts=list(outcome.contacts[:CONTACTS_MAX]),
        refusals=_refusals(outcome.contacts),
    )


def _violations(planted: tuple[str, ...]) -> list[str]:
    more = [f"it made {len(planted) - VIOLATIONS_MAX} more"] if len(planted) > VIOLATIONS_MAX else []
    return [*(f"it made {what}" for what in planted[:VIOLATIONS_MAX]), *more]


def _refusals(contacts: tuple[NetContact, ...]) -> list[str]:
    """Why the proxy refused, each reason once; each names its host."""
    reasons = (
        one.reason if not one.host or one.host in one.reason else f"{one.host}:{one.port}: {one.reason}"
        for one in contacts
        if one.verdict == "refused"
    )
    return list(dict.fromkeys(reasons))[:REFUSALS_MAX]


async def _collected(place: _Place, io: Io) -> tuple[list[Artifact], list[str]]:
    """The files that the attempt left, stored; and what of them was not kept. Then its folder goes."""
    collected = Collected(place.artifacts)
    artifacts: list[Artifact] = []
    notes: list[str] = []
    with closing(_walk(collected)) as files:

        def following() -> Found | None:
            file = next(files, None)
            if file is None:
                place.remove()
            return file

        while (file := await anyio.to_thread.run_sync(following)) is not None:
            path = io.masked(file.path)
            if file.path.partition("/")[0] in STREAMS:
                notes.append(f"artifact {path}: the name is that of the task's output")
            elif len(path) > PATH_CHARS_MAX:  # else the whole outcome, violations and all, would be none that can be
                notes.append(f"artifact {path[:PATH_SHOWN]}…: with its secrets masked, the name is too long")
            else:
                stored = await _content(file, io)
                artifacts.append(Artifact(
                    path=path, size_bytes=stored.size, checksum=stored.sha256, gap_at=stored.gap_at,
                    gap_bytes=stored.gap,
                ))
                if stored.cut:
                    notes.append(f"of artifact {path}, {stored.gap} of {stored.total} bytes are missing")
    return artifacts, [*notes, *(f"artifact {what}" for what in collected.skipped)]


def _walk(collected: Collected) -> Generator[Found, None, None]:
    yield from collected


async def _content(file: Found, io: Io) -> StoredBlob:
    async with io.store_stream() as stream:
        while chunk := await anyio.to_thread.run_sync(file.content.read, _CHUNK):
            await stream.write(chunk)
        return await stream.finish()


async def _last_lines(stream: Captured, io: Io) -> list[str]:
    """The last lines of what was kept, as plain text; from the blob, where secrets are masked already."""
    if not stream.size_bytes:
        return []
    text = plain(await io.blob(stream.sha256), cut=False)
    lines = [line.rstrip() for line in text[-LINE_CHARS_MAX * LAST_LINES_MAX * 4 :].split("\n")]
    return [line[:LINE_CHARS_MAX] for line in lines if line][-LAST_LINES_MAX:]
