"""From the files of a run to a commit: what would change in the workspace, its approval in the log, and the commit by
the person's own git (docs/orchestra.md)."""

from __future__ import annotations

import difflib
import os
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import anyio.to_thread
import msgspec

from pmagent.actors.orchestra.running.effects import STREAMS
from pmagent.actors.sandbox.arguments import is_repository
from pmagent.actors.sandbox.protected import is_named
from pmagent.contracts.control import Channel, OperatorId
from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_apply import FILES_MAX, AppliedFile, RunApplyApproved, RunApplyEnded
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.tree import LeadsOut, Tree
from pmagent.jobs.catalogue import ALL, Catalogue
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import RUNS
from pmagent.projections.runs.paths import FORBIDDEN
from pmagent.projections.views.runs import Run
from pmagent.service.answer import Answer
from pmagent.service.host import Host
from pmagent.service.io import read_event
from pmagent.service.requests import OPERATOR

_ELSEWHERE: Final = frozenset((
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
))  # fmt: skip
"""Variables of a hook or a shell that make git work on another repository."""


class NotApplicable(PmagentError, exit_code=1):
    """The files of the run cannot be taken over so; the workspace is as it was."""


class Change(msgspec.Struct, frozen=True):
    """A file as a task left it, and what stands in its place (None: nothing)."""

    task: str
    artifact: Artifact
    before: bytes | None
    after: bytes

    @property
    def path(self) -> str:
        """Relative to the workspace."""
        return self.artifact.path

    def lines(self) -> list[str]:
        """The difference, for people: a heading, and a unified diff where both are text."""
        old, new = self.before or b"", self.after
        heading = f"{'new file' if self.before is None else 'changed'}: {self.path} (task {self.task})"
        try:
            if b"\0" not in old + new:
                lines = _lines(old.decode()), _lines(new.decode())
                found = difflib.unified_diff(*lines, "before", "after", lineterm="")
                return [heading, *(shown for line in found for shown in line.split("\n"))]
        except UnicodeDecodeError:
            pass
        return [heading, f"binary: {len(old)} bytes, then {len(new)}, SHA-256 {self.artifact.checksum}"]


class Offer(msgspec.Struct, frozen=True):
    """All that would change, on top of the commit ``head`` ("": there is none yet)."""

    run: Run
    head: str
    changes: list[Change]

    @property
    def files(self) -> list[AppliedFile]:
        """The changes, as the log holds them."""
        return [
            AppliedFile(task=one.task, artifact=one.artifact, before="" if one.before is None else _digest(one.before))
            for one in self.changes
        ]

    @property
    def digest(self) -> str:
        """Stands for exactly these changes, of this run, to what is there now."""
        return _digest(msgspec.json.encode([self.run.id, self.head, self.files]))


def _lines(text: str) -> list[str]:
    """As git sees them: no other character ends a line, and the last may lack its end."""
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def offered(jobs: Jobs, position: int, task: str, workspace: Path) -> Offer:
    """The changes by the files that the done tasks of the run requested at ``position`` have left ("": all of them);
    files that stand there already as they are left out. Raises NotApplicable, NotFound, CorruptLog, OSError."""
    run: Run = jobs.view(RUNS, position)
    root = workspace.resolve()
    if run.asked.dry_run or task not in ("", *(planned.name for planned in run.planned_tasks)):
        what = "it was a dry run" if run.asked.dry_run else f"it has no task {task!r}"
        raise NotApplicable(f"nothing of the run {run.id[:8]} can be applied: {what}", "pmagent runs shows its tasks")
    left: dict[str, tuple[str, Artifact]] = {}
    for name, artifact in _left(jobs, run, task):
        other, same = left.setdefault(artifact.path, (name, artifact))
        if same.checksum != artifact.checksum:
            what = f"the tasks {other} and {name} have both left {artifact.path}, with different content"
            raise NotApplicable(what, "name the task to apply")
        _check_place(root, artifact)
    _check_no_repository(root, left)
    if len(left) > FILES_MAX:
        raise NotApplicable(f"{len(left)} files are more than the {FILES_MAX} of one commit", "name the task to apply")
    _git(root, "rev-parse", "--show-toplevel", hint="run it in a git repository")
    head = _head(root)
    found = [
        Change(name, artifact, _content(root / path), jobs.blobs.get(artifact.checksum))
        for path, (name, artifact) in sorted(left.items())
    ]
    changes = [change for change in found if change.before != change.after]
    _check_clean(root, [change.path for change in changes])
    return Offer(run, head, changes)


def _left(jobs: Jobs, run: Run, wanted: str) -> list[tuple[str, Artifact]]:
    """The files of done tasks, each with its task; also of those that are done since an earlier run."""
    found: list[tuple[str, Artifact]] = []
    for task, planned in run.pairs:
        if task.state == "done" and wanted in ("", planned.name):
            position = run.left[task.left].position if task.left >= 0 else run.asked.done[planned.name]
            artifacts = jobs.at(position).data.result.artifacts
            found += [(planned.name, one) for one in artifacts if one.path not in STREAMS]
    return found


def _check_place(root: Path, artifact: Artifact) -> None:
    """Look whether a file may stand there: inside the repository, behind no link, under no name that programs obey."""
    path = artifact.path
    parts = path.split("/")
    if is_named(path) or parts[0].lower() in FORBIDDEN:
        raise NotApplicable(f"{path} is protected: programs obey files of such names", "write it yourself, if you must")
    if artifact.gap_bytes:
        raise NotApplicable(f"{path} is cut: {artifact.gap_bytes} bytes of it are missing", "let the task write less")
    at = root
    for number, part in enumerate(parts, 1):
        at = at / part
        mode = at.lstat().st_mode if os.path.lexists(at) else 0
        if not mode:
            return
        expected = stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)
        if not expected or os.path.lexists(at / ".git"):
            what = "a link" if stat.S_ISLNK(mode) else "a repository" if stat.S_ISDIR(mode) else "no folder, or no file"
            raise NotApplicable(f"{path} cannot be written: {at.relative_to(root)} is {what}", "move it out of the way")


def _check_no_repository(root: Path, paths: Iterable[str]) -> None:
    """Look whether the files, with those that are there, would make a folder one that git obeys as a repository."""
    entries: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for number, part in enumerate(parts):
            entries.setdefault("/".join(parts[:number]), set()).add(part)
    for folder, names in entries.items():
        if is_repository({*names, *(os.listdir(root / folder) if (root / folder).is_dir() else ())}):
            what = f"{folder or '.'} would become a repository, whose settings git obeys"
            raise NotApplicable(what, "write it yourself, if you must")


def _check_clean(root: Path, paths: list[str]) -> None:
    """Nothing that is not committed is overwritten, and nothing that git ignores is committed."""
    if not paths:
        return
    dirty = _git(root, "status", "--porcelain", "-z", "--untracked-files=all", "--", *paths)
    ignored = _git(root, "check-ignore", "-z", "--stdin", given="\0".join(paths).encode(), codes=(0, 1))
    if dirty:
        name = dirty.split(b"\0")[0][3:].decode(errors="replace")
        raise NotApplicable(f"{name} has changes that are not committed", "commit or stash them first")
    if ignored:
        name = ignored.split(b"\0")[0].decode(errors="replace")
        raise NotApplicable(f"git ignores {name}", "look at: git check-ignore -v")


def _head(root: Path) -> str:
    return _git(root, "rev-parse", "--quiet", "--verify", "HEAD", codes=(0, 1)).decode().strip()


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if os.path.lexists(path) else None


def commit(workspace: Path, offer: Offer, message: str) -> str:
    """Write the changes and commit them, and nothing else, as the person whose git this is; the commit's id. Where that
    fails, the files are as they were. Raises NotApplicable, OSError."""
    root, paths = workspace.resolve(), [change.path for change in offer.changes]
    _check_clean(root, paths)
    if _head(root) != offer.head:
        raise NotApplicable("another commit is checked out than when this was shown", "look at it again: pmagent apply")
    for change in offer.changes:
        _check_place(root, change.artifact)
        if _content(root / change.path) != change.before:
            raise NotApplicable(f"{change.path} has changed since it was shown", "look at it again: pmagent apply")
    try:
        for change in offer.changes:
            _write(root, change.path, change.after)
        _git(root, "add", "--", *paths)
        _git(root, "commit", "--quiet", "--file=-", "--", *paths, given=message.encode())
    except BaseException:
        _undo(root, offer)
        raise
    return _git(root, "rev-parse", "HEAD").decode().strip()


def different(workspace: Path, offer: Offer, made: str) -> list[str]:
    """The paths at which the commit ``made`` does not hold what was approved, as git's filters store it: a hook, or a
    program that wrote there at the same time, may have changed it. Raises NotApplicable."""
    root = workspace.resolve()
    listed = _git(root, "ls-tree", "-z", made, "--", *(change.path for change in offer.changes))
    found = {name: entry.split()[2] for entry, _, name in (one.partition(b"\t") for one in listed.split(b"\0")[:-1])}
    return [
        change.path
        for change in offer.changes
        if found.get(os.fsencode(change.path))
        != _git(root, "hash-object", f"--path={change.path}", "--stdin", given=change.after).strip()
    ]


def _write(root: Path, path: str, content: bytes) -> None:
    """A file in place of another, with its permissions. Raises NotApplicable, OSError."""
    try:
        Tree(root).replace(path, [content], shared=True)
    except LeadsOut:
        raise NotApplicable(f"{path} leads out of the workspace by now", "look at it again: pmagent apply") from None


def _undo(root: Path, offer: Offer) -> None:
    """Every file as it was; folders that were made stay, empty."""
    for change in offer.changes:
        if change.before is not None:
            _write(root, change.path, change.before)
        else:
            with suppress(FileNotFoundError):
                (root / change.path).unlink()
    with suppress(NotApplicable):  # what went wrong before is told
        _git(root, "reset", "--quiet", "--", *(change.path for change in offer.changes))


def _git(
    root: Path, *arguments: str, given: bytes = b"", codes: tuple[int, ...] = (0,), hint: str = "look at: git status"
) -> bytes:
    """The output of the person's git, with their settings and hooks; paths mean themselves. Raises NotApplicable for an
    exit code that is none of ``codes``."""
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    literal = ["--literal-pathspecs"] if arguments[0] != "check-ignore" else []  # it knows no others
    # To look starts no program that the repository's settings name.
    command = ["git", *literal, "-c", "core.fsmonitor=false", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise NotApplicable("git is not installed", "install the package git") from None
    if done.returncode not in codes:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
        raise NotApplicable(f"git {arguments[0]} fails: {said or f'exit code {done.returncode}'}", hint)
    return done.stdout


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


# --- the log -------------------------------------------------------------------------------------------------------


class _Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run_id: str
    task: str
    digest: str
    operator: OperatorId
    channel: Channel
    request: str


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run_id: str
    approval: Annotated[int, msgspec.Meta(ge=1)]
    commit: str
    reason: str
    request: str
    operator: str = ""


async def approve(host: Host, arguments: dict[str, Any]) -> Answer:
    """Record that an operator approves exactly the changes that ``digest`` stands for: ``{position}``. Raises
    NotApplicable when they are others by now; NoSuchJob."""
    asked = _understood(arguments, _Approval)

    def look() -> Offer:
        position = Catalogue(host.layout).called([RUNS], asked.run_id, ALL).position
        with opened(host.layout) as jobs:
            return offered(jobs, position, asked.task, host.layout.workspace)

    offer = await anyio.to_thread.run_sync(look)
    if offer.digest != asked.digest or not offer.changes:
        raise NotApplicable("the digest is not that of what would change now", "look at it again: pmagent apply")
    made = RunApplyApproved(
        operator_id=asked.operator, channel=asked.channel, run_id=asked.run_id, digest=asked.digest, head=offer.head,
        files=offer.files,
    )
    return await _record(host, made, asked)


async def ended(host: Host, arguments: dict[str, Any]) -> Answer:
    """Record what came of approved changes: ``{position}``. Raises NotApplicable where none were approved."""
    asked = _understood(arguments, _End)
    try:
        approved = (await anyio.to_thread.run_sync(read_event, host.layout.store, asked.approval)).data
    except NotFound:
        approved = None
    theirs = isinstance(approved, RunApplyApproved) and asked.operator in ("", approved.operator_id)
    if not isinstance(approved, RunApplyApproved) or not theirs or approved.run_id != asked.run_id:
        raise NotApplicable(f"position {asked.approval} approves nothing of this run", "pmagent apply does it in order")
    reason = asked.reason[:REASON_CHARS_MAX]
    made = RunApplyEnded(run_id=asked.run_id, approval=asked.approval, commit=asked.commit, reason=reason)
    return await _record(host, made, asked)


async def _record(host: Host, made: msgspec.Struct, asked: _Approval | _End) -> Answer:
    def drafted() -> Any:
        return host.runtime.intake.fact(made, asked.request, OPERATOR, asked.run_id)

    draft = await anyio.to_thread.run_sync(drafted)
    return Answer(document={"position": await host.tell_draft(draft)})


def _understood(arguments: dict[str, Any], shape: type[Any]) -> Any:
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise NotApplicable(f"this is no request to apply: {error}", "pmagent apply makes a good one") from error
