"""Surveys of whole repositories: the same for the same commit, whatever stands in their files."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.sources.repository import survey as surveys
from pmagent.actors.audit.sources.repository.survey import fitted, survey_repository
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import FILES_MAX, CodePassage, Finding, RepoSurvey
from tests.support.repositories import Made

LIMITS = AuditLimits()
TROUBLE = "tests.support.survey_trouble"

GRAPH = """\
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    found: Annotated[list[str], operator.add]


builder = StateGraph(State)
builder.add_node("left", left)
builder.add_node("right", right)
builder.add_node("join", join)
builder.add_edge(START, "left")
builder.add_edge(START, "right")
builder.add_edge(["left", "right"], "join")
builder.add_edge("join", END)
graph = builder.compile()
"""
NOTEBOOK = json.dumps({
    "nbformat": 4, "metadata": {},
    "cells": [{"cell_type": "code", "source": ["%pip install x\n", "import os\n", "os.system(command)\n"]}],
})  # fmt: skip
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"


@pytest.fixture
def source(tmp_path: Path) -> Made:
    made = Made(tmp_path / "source")
    made.commit("Set up", {"README.md": "words", "src/graph.py": GRAPH, "notes.ipynb": NOTEBOOK})
    made.commit("Add a tool", {"bin/fetch": "#!/usr/bin/env python3\nrun(['git', 'clone', url])\n"})
    made.commit(
        "Add what is hard to read",
        {
            "old.py": "print 'hello'\n",
            "latin.py": "name = '\u00e4'\n".encode("latin-1"),
            "wide.py": "x = 1\n".encode("utf-16"),
            "null.py": b"x = 1\0\n",
            "deep.py": "x = a" + ".b" * 20_000 + "\n",
            "broken.ipynb": "{",
            "data.bin": os.urandom(100),
            "venv/lib/site-packages/x.py": "eval(x)\n",
            "mine/pyvenv.cfg": "home = /usr/bin\n",
            "mine/bin/activate_this.py": "eval(x)\n",
            "model.py": POINTER,
            "weights": POINTER,
            ".gitattributes": "weights filter=lfs diff=lfs merge=lfs -text\n",
        },
    )
    return made


def survey(source: Made, tmp_path: Path, name: str = "clone", limits: AuditLimits = LIMITS) -> RepoSurvey:
    folder = tmp_path / name
    folder.mkdir()
    return survey_repository(str(source.path), limits, str(folder))


def test_all_that_is_there_is_surveyed(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path)
    assert found.commit == source.git("rev-parse", "HEAD")
    assert found.branch == "main"
    assert found.history.total == 3
    assert found.file_count == len(found.files) == 17
    assert found.files == sorted(found.files)
    (graph,) = found.graphs
    assert (graph.path, graph.parallel_sources, graph.fan_in_targets) == ("src/graph.py", ["__start__"], ["join"])
    assert found.examined["python_files"] == 8
    assert found.examined["notebooks"] == 2
    shell = [finding for finding in found.findings if finding.goal == "security.os_system"]
    assert [finding.path for finding in shell] == ["notes.ipynb"]
    assert {finding.goal for finding in found.findings} <= set(GOALS)
    assert found.counts == {goal: found.counts[goal] for goal in sorted(found.counts)}
    assert not any("site-packages" in finding.path for finding in found.findings)


def test_what_cannot_be_read_is_told_with_its_reason(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path)
    assert {one.path: one.reason.partition(":")[0] for one in found.unparsed} == {
        "broken.ipynb": "is no notebook",
        "deep.py": "is nested too deeply, or is too large, to be parsed",
        "latin.py": "not UTF-8, and names no encoding",
        "model.py": "is a Git LFS pointer",
        "null.py": "holds NUL bytes",
        "old.py": "Python 2",
        "wide.py": "is UTF-16",
    }
    assert found.notes == [
        "the commit was audited, not what is changed in the working tree of the source",
        "2 files of installed packages, left out: mine/bin/activate_this.py, venv/lib/site-packages/x.py",
        "2 pointers of Git LFS; what they point to was not fetched",
    ]


def test_the_same_commit_gives_the_same_survey(source: Made, tmp_path: Path) -> None:
    """Each comes from a process of its own, whose hashes have a seed of their own."""
    one = msgspec.json.encode(survey(source, tmp_path, "one"))
    other = msgspec.json.encode(survey(source, tmp_path, "other"))
    assert one == other


def test_a_survey_is_read_back_as_it_was(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(found), type=RepoSurvey) == found


def test_a_link_is_a_path_of_the_repository_and_is_not_read(source: Made, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("eval(x)\n")
    (source.path / "inside.py").symlink_to(tmp_path / "outside.py")
    (source.path / "LICENSE").symlink_to("README.md")
    source.commit("Links")
    found = survey(source, tmp_path)
    assert {"inside.py", "LICENSE"} <= set(found.files)
    assert not any(finding.path == "inside.py" for finding in found.findings)
    assert "inside.py" not in {one.path for one in found.unparsed}


def test_a_repository_without_python_is_surveyed(tmp_path: Path) -> None:
    made = Made(tmp_path / "words")
    made.commit("Words", {"README": "words"})
    found = survey(made, tmp_path)
    assert (found.files, found.graphs, found.unparsed, found.examined["python_files"]) == (["README"], [], [], 0)


def test_it_does_not_matter_how_many_processes_read(
    source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveys, "_CHILD", TROUBLE)
    source.commit("Grow", {f"src/more{number}.py": f"x{number} = eval(text)\n" for number in range(40)})
    found = []
    for name, processors in (("one", {0}), ("three", {0, 1, 2})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, held=processors: held)
        found.append(survey(source, tmp_path, name))
    assert found[0] == found[1]
    assert found[0].counts["security.evaluation"] == 40


@pytest.mark.parametrize("processors", [{0}, {0, 1}])
def test_files_that_end_the_process_are_left_out_and_told(
    source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: set[int]
) -> None:
    monkeypatch.setattr(surveys, "_CHILD", TROUBLE)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors)
    source.commit(
        "Harm",
        {
            "a.py": "# falls\n",
            "b.py": "# grows\n",
            "c\nd.py": "# raises\n",
            "e.py": "# takes long\n",
            "f.py": "x = 1\n",
        },
    )
    found = survey(source, tmp_path)
    reasons = {one.path: one.reason for one in found.unparsed if one.line == 0}
    del reasons["deep.py"]
    assert reasons == {
        "a.py": "cannot be read: it ends the process that reads it",
        "b.py": "takes more memory to be read than there is",
        "c\\x0ad.py": "cannot be read: it ends the process that reads it",
        "e.py": "takes longer to be read than 120 s",
    }
    assert len(found.graphs) == 1


def test_too_many_files_that_end_the_process_end_the_survey(
    source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveys, "_CHILD", TROUBLE)
    monkeypatch.setattr("pmagent.actors.audit.sources.repository.wary.RESTARTS", 2)
    source.commit("Harm", {f"{name}.py": "# falls\n" for name in "abc"})
    with pytest.raises(SourceFailed) as raised:
        survey(source, tmp_path)
    assert raised.value.code == "failed"


def test_a_survey_that_takes_too_long_is_ended(source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "_CHILD", TROUBLE)
    source.commit("Harm", {"a.py": "# never ends\n"})
    with pytest.raises(SourceFailed) as raised:
        survey(source, tmp_path, limits=AuditLimits(survey_seconds=1))
    assert raised.value.code == "timed_out"


def test_a_survey_is_cancelled(source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "_CHILD", TROUBLE)
    source.commit("Harm", {"a.py": "# never ends\n"})
    stop = threading.Event()
    (tmp_path / "clone").mkdir()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    with pytest.raises(SourceFailed) as raised:
        survey_repository(str(source.path), LIMITS, str(tmp_path / "clone"), stop)
    timer.join()
    assert raised.value.code == "cancelled"


def test_limits_on_files_are_kept_and_told(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path, limits=AuditLimits(files=2, file_bytes=400))
    assert found.examined["python_files"] + found.examined["notebooks"] == 2
    assert any("larger than 400 bytes" in note and "src/graph.py" in note for note in found.notes)
    assert any("Python files, not read: there are more than 2" in note for note in found.notes)
    whole = survey(source, tmp_path, "whole")
    assert "unread" not in whole.examined
    assert found.examined["unread"] == whole.examined["python_files"] + whole.examined["notebooks"] - 2


def test_no_survey_is_longer_than_it_may_be(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path)
    long = msgspec.structs.replace(
        found,
        files=[f"{n:0200}" for n in range(FILES_MAX)],
        findings=[Finding(goal="repo.term", path="p", line=1, text="\n" * 2000)] * 2_000,
    )
    short = fitted(long)
    assert len(msgspec.json.encode(short)) <= 8 * 2**20
    assert short.files == long.files[: len(short.files)]
    assert short.file_count == found.file_count
    assert any(note.startswith("of files the first ") for note in short.notes)
    assert fitted(short) == short


def test_passages_go_whole_where_there_is_no_room_for_them(source: Made, tmp_path: Path) -> None:
    found = survey(source, tmp_path)
    assert found.passages
    long = CodePassage(path="p", line=1, name="n", words="word " * 1_000, said="")
    assert fitted(msgspec.structs.replace(found, passages=[long] * 2_000)).passages == []


def test_a_survey_is_fitted(source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = survey(source, tmp_path, "whole")
    monkeypatch.setattr(surveys, "SURVEY_BYTES", len(msgspec.json.encode(whole)) - 1)
    assert len(msgspec.json.encode(survey(source, tmp_path))) < len(msgspec.json.encode(whole))


def test_a_survey_of_which_nothing_more_can_go_stays(
    source: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveys, "SURVEY_BYTES", 10)
    found = survey(source, tmp_path)
    assert (found.files, found.findings, found.graphs) == ([], [], [])


def test_a_file_for_which_there_is_no_memory_is_left_out(source: Made, tmp_path: Path) -> None:
    source.commit("Data", {"data.py": "x = [" + "1," * 500_000 + "]\n"})
    found = survey(source, tmp_path, limits=AuditLimits(survey_memory=2**27))
    assert "data.py" in {one.path for one in found.unparsed}
    assert len(found.graphs) == 1
