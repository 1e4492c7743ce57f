"""``pmagent apply``: from the files of a run to a commit, and everything that it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pmagent.cli import apply as module
from pmagent.cli.output import Output
from pmagent.contracts.orchestra import Artifact
from pmagent.jobs.history import opened
from pmagent.log.source import store_at
from pmagent.orchestra import applying
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.commands import Ran, invoke, owned, pmagent
from tests.support.orchestra import RUN, exited
from tests.support.pages import RunHarness, written

NEW, OLD = b"def new():\n    return 1\n", b"old\n"
Files = Mapping[str, Mapping[str, bytes]]


class Place:
    """A workspace that is a repository, with a run whose tasks have left these files."""

    def __init__(self, folder: Path, tasks: Files, **more: Any) -> None:
        self.path = fresh_example(folder)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.write("src/old.py", OLD)
        self.write(".gitignore", b"*.log\n.pmagent/\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "first")
        harness = RunHarness()
        contents = [*(content for files in tasks.values() for content in files.values()), b"said"]
        said = Artifact(path="stdout", size_bytes=4, checksum=sha256(b"said").hexdigest())

        def tool(event: Any) -> Any:
            name = harness.history[event.data.assigned - 1].data.name
            left = [
                Artifact(path=path, size_bytes=len(content), checksum=sha256(content).hexdigest(), **more)
                for path, content in tasks[name].items()
            ]
            return exited(event, artifacts=[said, *left])

        harness.tool = tool
        harness.request({name: [] for name in tasks}, intent="Write it anew\nand well")
        harness.run()
        written(self.path, harness.history, contents)
        owned(self.path)

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.path), *arguments], check=True, capture_output=True, text=True
        ).stdout

    def write(self, path: str, content: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(content)

    def apply(self, *arguments: str) -> Ran:
        return pmagent(self.path, "apply", RUN[:8], *arguments)

    def digest(self, *arguments: str) -> str:
        document = self.apply(*arguments, "--json").document
        return str(document["digest"])

    def facts(self) -> list[Any]:
        """The facts that the log holds of it."""
        with opened(Layout(self.path)) as jobs:
            tail = store_at(self.path).reader().tail().position
            found = [jobs.at(position) for position in range(1, tail + 1)]
            return [event for event in found if event.type.startswith("run.apply_")]

    def state(self) -> tuple[str, str, bytes, bool]:
        lines = self.git("status", "--porcelain").splitlines()
        status = "\n".join(line for line in lines if not line[3:].startswith(("share/", "jobs/", "runs/")))
        return self.git("rev-parse", "HEAD"), status, (self.path / "src/old.py").read_bytes(), (
            self.path / "src/new.py"
        ).exists()


BOTH: Files = {"a": {"src/new.py": NEW}, "b": {"src/old.py": b"new\n"}}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "workspace", BOTH)


def test_the_difference_is_shown_and_changes_nothing(place: Place) -> None:
    before = place.state()
    shown = place.apply()
    assert shown.code == 1
    lines = [line[2:] for line in shown.text.splitlines() if re.match("  [+-]", line)]
    changed = [line for line in lines if line[:3] not in ("+++", "---")]
    assert changed == ["+def new():", "+    return 1", "-old", "+new"]
    assert place.digest() in shown.text
    assert place.state() == before
    assert place.facts() == []


def test_what_is_approved_is_committed_by_the_persons_git_and_recorded(place: Place) -> None:
    (place.path / "src/old.py").chmod(0o755)
    place.git("commit", "--quiet", "--all", "--message", "mode")
    place.write("other.txt", b"mine\n")
    place.git("add", "other.txt")
    digest = place.digest()
    done = place.apply("--digest", digest, "--operator", "ada", "--json")
    assert done.code == 0, done.errors
    head = place.git("rev-parse", "HEAD").strip()
    assert done.document["commit"] == head
    assert place.git("show", "--format=%an <%ae>%n%s", "--name-status", "HEAD").split() == [
        "Ada", "<ada@example.org>", "Write", "it", "anew", "A", "src/new.py", "M", "src/old.py",
    ]  # fmt: skip
    approved, ended = place.facts()
    assert f"Pmagent-Run: {RUN}\nPmagent-Approval: {approved.position}\n" in place.git("log", "-1", "--format=%B")
    assert (approved.data.operator_id, approved.data.digest, approved.correlation) == ("ada", digest, RUN)
    assert [(one.task, one.artifact.path, one.before) for one in approved.data.files] == [
        ("a", "src/new.py", ""), ("b", "src/old.py", sha256(OLD).hexdigest()),
    ]
    assert (ended.data.approval, ended.data.commit, ended.data.reason) == (approved.position, head, "")
    assert place.git("diff", "--cached", "--name-only").split() == ["other.txt"], "what was staged besides stays so"
    assert os.access(place.path / "src/old.py", os.X_OK)
    again = place.apply()
    assert (again.code, "nothing to apply" in again.text) == (0, True)
    assert pmagent(place.path, "replay").code == 0
    lines = pmagent(place.path, "log", "tail", "--type", "run.apply_*").lines
    assert ["ada approves for a commit: src/new.py; src/old.py" in lines[0], head in lines[1]] == [True, True]


def test_one_task_is_applied_alone(place: Place) -> None:
    assert place.apply("b", "--digest", place.digest("b")).code == 0
    assert place.git("show", "--format=", "--name-only", "HEAD").split() == ["src/old.py"]
    assert place.apply("c").code == 1


def test_on_a_terminal_yes_approves_and_anything_else_does_not(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_answer", lambda _: True)
    monkeypatch.setattr(Output, "is_seen", True)
    before = place.state()
    monkeypatch.setattr(module, "confirmed", lambda *_: False)
    assert place.apply().code == 1
    assert place.state() == before
    monkeypatch.setattr(module, "confirmed", lambda *_: True)
    assert place.apply().code == 0
    assert place.state() != before


@each("change", ["the file", "another file beside it", "the commit"])
def test_an_approval_counts_for_exactly_what_was_shown(tmp_path: Path, change: str) -> None:
    place = Place(tmp_path / re.sub(" ", "-", change), BOTH)
    digest = place.digest()
    if change == "the file":
        place.write("src/old.py", b"edited\n")
    else:
        place.write("more.txt", b"more\n")
        if change == "the commit":
            place.git("add", "--all")
            place.git("commit", "--quiet", "--message", "more")
    before = place.state()
    if change == "another file beside it":
        assert place.apply("--digest", digest).code == 0
        return
    asked = {"run_id": RUN, "task": "", "digest": digest, "operator": "ada", "channel": "cli"}
    with pytest.raises(applying.NotApplicable):
        call(place.path, "orchestra.apply", asked)
    assert place.apply("--digest", digest).code == 1
    assert place.state() == before
    assert place.facts() == []


HOOK = "#!/bin/sh\necho not today >&2\nexit 1\n"


def test_a_commit_that_git_refuses_leaves_everything_as_it_was(place: Place) -> None:
    before = place.state()
    place.write(".git/hooks/pre-commit", HOOK.encode())
    (place.path / ".git/hooks/pre-commit").chmod(0o755)
    refused = place.apply("--digest", place.digest())
    assert refused.code == 1
    assert "not today" in refused.errors
    assert place.state() == before
    approved, ended = place.facts()
    assert (ended.data.approval, ended.data.commit) == (approved.position, "")
    assert "not today" in ended.data.reason


def test_a_commit_that_holds_something_else_is_no_success_and_recorded_as_such(place: Place) -> None:
    place.git("config", "core.autocrlf", "input")  # what a filter makes of it is no difference
    place.write(".git/hooks/pre-commit", b"#!/bin/sh\necho other > src/old.py && git add src/old.py\n")
    (place.path / ".git/hooks/pre-commit").chmod(0o755)
    done = place.apply("--digest", place.digest())
    assert done.code == 1
    assert "src/old.py" in done.errors
    assert "src/new.py" not in done.errors
    _, ended = place.facts()
    assert ended.data.commit == place.git("rev-parse", "HEAD").strip()
    assert "src/old.py" in ended.data.reason


@each("path", [
    ".git/hooks/pre-commit", "src/.GIT/config", ".pmagent/config.toml", "orchestra.config.yaml", ".vscode/x.json",
    "AGENTS.md", "share/x.json", "Jobs/x.json", "sub/.envrc", "x.log", "link/x.py", "src/old.py/below", "src",
    "pointer.txt", "nested/x.py",
])
def test_places_that_no_file_of_a_run_may_have_are_refused(tmp_path: Path, path: str) -> None:
    place = Place(tmp_path / sha256(path.encode()).hexdigest()[:8], {"a": {path: NEW}})
    outside = tmp_path / f"outside-{sha256(path.encode()).hexdigest()[:8]}"
    outside.mkdir()
    (place.path / "link").symlink_to(outside)
    (place.path / "pointer.txt").symlink_to(outside / "x")
    (place.path / "nested").mkdir()
    subprocess.run(["git", "init", "--quiet", str(place.path / "nested")], check=True)
    before = place.state()
    refused = place.apply("--json")
    assert refused.code == 1
    assert "digest" not in refused.document
    assert list(outside.iterdir()) == []
    assert place.state() == before


def test_files_that_clash_or_are_cut_are_refused(tmp_path: Path) -> None:
    clash = Place(tmp_path / "clash", {"a": {"x.py": NEW}, "b": {"x.py": OLD}})
    assert "a and b" in clash.apply().errors
    assert clash.apply("a").code == 1
    assert "x.py" in clash.apply("a").text
    cut = Place(tmp_path / "cut", {"a": {"x.py": NEW}}, gap_bytes=7)
    assert "is cut" in cut.apply().errors


def test_uncommitted_work_is_never_overwritten(place: Place) -> None:
    place.write("src/new.py", b"mine\n")
    assert "not committed" in place.apply().errors
    assert (place.path / "src/new.py").read_bytes() == b"mine\n"


def test_hostile_content_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    place = Place(tmp_path / "w", {"a": {"x.txt": b"a\x1b]0;title\x07\x1b[2Jb\n", "y.bin": b"\0\x1b[2J"}})
    shown = place.apply()
    assert b"\x1b" not in shown.out
    assert "binary" in shown.text


@each("change", ["a\r\nb\n", "a\u2028b\n", "a\nb", "a\x0cb\n"])
def test_every_change_is_seen(tmp_path: Path, change: str) -> None:
    """Only a line feed ends a line, and the last line may lack it."""
    place = Place(tmp_path / change.encode().hex(), {"a": {"src/lines.py": change.encode()}})
    place.write("src/lines.py", b"a\nb\n")
    place.git("add", "src/lines.py")
    place.git("commit", "--quiet", "--message", "lines")
    (file,) = place.apply("--json").document["files"]
    assert [line for line in file["difference"] if re.match("[+-](?![+-])", line)]
    assert ("\\ No newline at end of file" in file["difference"]) is not change.endswith("\n")


def test_nothing_of_a_repository_from_others_runs_before_it_is_accepted(place: Place) -> None:
    """It may have come with its .git, in an archive."""
    mark = place.path.parent / "mark"
    place.git("config", "core.fsmonitor", f"touch {mark}; false")
    assert place.apply().code == 1
    assert not mark.exists()
    other = place.path.parent / "copy"
    shutil.copytree(place.path, other, symlinks=True)
    refused = invoke("apply", RUN[:8], environ={"PMAGENT_WORKSPACE": str(other)})
    assert (refused.code, refused.text) == (7, "")


def test_no_folder_becomes_a_repository_that_git_obeys(tmp_path: Path) -> None:
    """Not even by two tasks, each of which leaves a part of it, or one after the other."""
    config = b"[core]\nbare = false\nfsmonitor = touch /tmp/x\n"
    one, other = {"x/HEAD": b"ref: refs/heads/m\n", "x/config": config}, {"x/objects/a": NEW, "x/refs/a": NEW}
    place = Place(tmp_path / "w", {"a": one, "b": other})
    before = place.state()
    assert "repository" in place.apply().errors
    assert place.apply("a", "--digest", place.digest("a")).code == 0
    assert "repository" in place.apply("b").errors
    assert place.state()[1:] == before[1:]


def test_a_commit_comes_only_on_top_of_what_was_shown(place: Place) -> None:
    with opened(Layout(place.path)) as jobs:
        asked = next(at for at in range(1, 50) if jobs.at(at).type == "run.requested")
        offer = applying.offered(jobs, asked, "", place.path)
    place.git("commit", "--quiet", "--allow-empty", "--message", "meanwhile")
    before = place.state()
    with pytest.raises(applying.NotApplicable):
        applying.commit(place.path, offer, "x")
    assert place.state() == before


def test_an_end_without_an_approval_is_refused(place: Place) -> None:
    asked = {"run_id": RUN, "commit": "", "reason": "x"}
    for approval in (1, 10**6):
        with pytest.raises(applying.NotApplicable):
            call(place.path, "orchestra.applied", {**asked, "approval": approval})
    assert place.facts() == []
