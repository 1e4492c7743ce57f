"""The contract's tools for repositories (5.1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.actors.audit.effects import remove
from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.repo_tools import analyze_graph_structure, clone_repo, extract_git_history
from pmagent.contracts.audit_events import AuditLimits
from tests.support import warm
from tests.support.commands import clean_environment
from tests.support.repositories import Made

GRAPH = """\
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    found: Annotated[dict, operator.ior]
    said: Annotated[list, operator.add]


builder = StateGraph(State)
for name in ("left", "right"):
    builder.add_node(name, run)
    builder.add_edge(START, name)
builder.add_node("join", run)
builder.add_edge(["left", "right"], "join")
builder.add_edge("join", END)
"""


def test_faults_of_graphs_as_text_json_and_sarif(tmp_path: Path) -> None:
    program = tmp_path / "p" / "agent.py"
    program.parent.mkdir()
    program.write_text(GRAPH.replace('"join", END', '"join", "end"'))
    (tmp_path / "p" / "broken.py").write_text("def (:\n")

    def lint(*arguments: str) -> tuple[int, str, str]:
        done = warm.run(
            [sys.executable, "-I", "-m", "pmagent", "graph", "lint", *arguments], cwd=tmp_path,
            env=clean_environment(), capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, text, _ = lint("p")
    assert code == 1
    assert "agent.py:17: error" in text
    assert "[unknown-node]" in text
    assert "not read: broken.py:1" in text
    code, text, _ = lint("p/agent.py", "--format", "json")
    assert (code, [one["rule"] for one in json.loads(text)["faults"]]) == (1, ["unknown-node"])
    code, text, _ = lint("p", "--format", "sarif")
    (run,) = json.loads(text)["runs"]
    assert run["tool"]["driver"]["rules"][0]["id"] == run["results"][0]["ruleId"] == "unknown-node"
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("agent.py", {"startLine": 17})
    program.write_text(GRAPH)
    assert lint("p")[0] == 0
    assert lint("nothing")[0] == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "p"]  # no workspace is made


@pytest.fixture
def source(tmp_path: Path) -> Made:
    made = Made(tmp_path / "source")
    made.commit("Set up", {"README": "words\r\n", ".gitattributes": "*.py filter=evil\nREADME eol=crlf\n"})
    made.commit("Draw the graph", {"src/graph.py": GRAPH, "run.sh": "#!/bin/sh\n"})
    return made


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_a_clone_is_a_path_that_is_removed_in_the_end(source: Made, temporary: Path) -> None:
    with clone_repo(str(source.path)) as path:
        assert isinstance(path, str)
        assert path.startswith(f"{temporary}/")
        assert sorted(os.listdir(path)) == [".git", ".gitattributes", "README", "run.sh", "src"]
        assert Path(path, "src/graph.py").read_text() == GRAPH
        status = subprocess.run(
            ["git", "-C", path, "status", "--porcelain", "--branch"], capture_output=True, check=True
        )
        assert status.stdout == b"## main\n"
    assert list(temporary.iterdir()) == []
    path.close()


def test_a_clone_that_fails_leaves_nothing(source: Made, temporary: Path) -> None:
    for repo_url, code in ((str(temporary / "none"), "not_found"), ("ext::sh", "bad_url")):
        with pytest.raises(SourceFailed) as raised:
            clone_repo(repo_url)
        assert raised.value.code == code
    source.commit("Nothing", {"nothing": bytes(2**20)})
    with pytest.raises(SourceFailed, match=r"take \d+ bytes, more than") as raised:
        clone_repo(str(source.path), AuditLimits(clone_bytes=2**19))
    assert raised.value.code == "too_large"
    assert list(temporary.iterdir()) == []


def test_links_are_checked_out_as_files(source: Made, temporary: Path) -> None:
    (source.path / "out").symlink_to("/etc")
    (source.path / "src" / "x.py").symlink_to("/etc/passwd")
    source.commit("Links")
    with clone_repo(str(source.path)) as path:
        assert not Path(path, "out").is_symlink()
        assert Path(path, "out").read_text() == "/etc"
        assert analyze_graph_structure(path)["nodes"] == ["left", "right", "join"]
    assert list(temporary.iterdir()) == []


def test_a_detached_source_is_checked_out_detached(source: Made, temporary: Path) -> None:
    source.git("checkout", "--quiet", "--detach", "HEAD~1")
    with clone_repo(str(source.path)) as path:
        head = subprocess.run(["git", "-C", path, "rev-parse", "--abbrev-ref", "HEAD"], capture_output=True, check=True)
        assert head.stdout == b"HEAD\n"
        assert [commit["message"] for commit in extract_git_history(path)] == ["Set up"]
    assert list(temporary.iterdir()) == []


def test_the_history_is_every_commit_oldest_first(source: Made) -> None:
    first, last = extract_git_history(str(source.path))
    assert first["message"] == "Set up"
    assert first["timestamp"] == "2025-10-09T08:53:20+00:00"
    assert last == {
        "commit": source.git("rev-parse", "HEAD"),
        "message": "Draw the graph",
        "timestamp": "2025-10-09T09:53:20+00:00",
    }


def test_a_repository_cannot_make_git_run_programs(source: Made, tmp_path: Path) -> None:
    marker, script = tmp_path / "marker", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    for name in ("gpg.program", "core.fsmonitor", "core.pager", "core.sshCommand", "alias.log"):
        source.git("config", name, str(script))
    source.git("config", "log.showSignature", "true")
    plain = source.git("cat-file", "commit", "HEAD")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n"
    signed = plain.replace("\n\n", f"\n{signature}\n", 1)
    commit = source.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{signed}\n".encode())
    source.git("update-ref", "refs/heads/main", commit)
    assert len(extract_git_history(str(source.path))) == 2
    assert not marker.exists()


def test_there_is_no_history_without_a_repository(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed) as raised:
        extract_git_history(str(tmp_path))
    assert raised.value.code == "not_found"


def test_the_structure_of_graphs_is_told(source: Made) -> None:
    found = analyze_graph_structure(str(source.path))
    assert found["file_found"]
    assert found["nodes"] == ["left", "right", "join"]
    assert set(found["edges"]) == {
        ("__start__", "left"), ("__start__", "right"), ("left", "join"), ("right", "join"), ("join", "__end__"),
    }  # fmt: skip
    assert found["has_parallelism"]
    assert found["parallel_sources"] == ["__start__"]
    assert found["fan_in_targets"] == ["join"]
    assert found["reducers_used"] == ["operator.ior", "operator.add"]
    assert found["wiring_summary"].startswith("src/graph.py:11: 3 nodes, 5 edges: ")
    assert (found["error"], found["unparsed"]) == ("", [])
    assert len(found["graphs"]) == 1


def test_a_folder_is_read_without_leaving_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "graph.py").write_text(GRAPH)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "graph.py").symlink_to(outside / "graph.py")
    (folder / "old.py").write_text("print 'x'\n")
    os.mkfifo(folder / "pipe.py")
    for name in ("site-packages", "mine"):
        (folder / name).mkdir()
        (folder / name / "graph.py").write_text(GRAPH)
    (folder / "mine" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    found = analyze_graph_structure(str(folder))
    assert (found["file_found"], found["nodes"], found["has_parallelism"], found["error"]) == (False, [], False, "")
    assert found["unparsed"] == [{"path": "old.py", "line": 1, "reason": "Python 2"}]


def test_what_is_no_folder_is_an_error_told(tmp_path: Path) -> None:
    found = analyze_graph_structure(str(tmp_path / "none"))
    assert found["error"] == "the repository's path is no folder"
    assert not found["file_found"]


def test_a_file_that_ends_the_process_does_not_hide_the_others(source: Made) -> None:
    (source.path / "a.py").write_text("x = " + "-" * 100_000 + "1\n")
    found = analyze_graph_structure(str(source.path))
    assert found["nodes"] == ["left", "right", "join"]
    assert [one["path"] for one in found["unparsed"]] == ["a.py"]


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".g\u200cit"])
def test_a_tree_that_reaches_into_git_is_not_checked_out(source: Made, temporary: Path, name: str) -> None:
    marker = temporary.parent / "marker"
    blob = source.git("hash-object", "-w", "--stdin", stdin=f"#!/bin/sh\ntouch {marker}\n".encode())
    hooks = source.git("mktree", stdin=f"100755 blob {blob}\tpost-checkout\n".encode())
    inner = source.git("mktree", stdin=f"040000 tree {hooks}\thooks\n".encode())
    top = source.git("mktree", stdin=f"040000 tree {inner}\t{name}\n".encode())
    commit = source.git("commit-tree", top, "-m", "Reach in")
    source.git("update-ref", "refs/heads/main", commit)
    with pytest.raises(SourceFailed) as raised:
        clone_repo(str(source.path))
    assert raised.value.code == "git"
    assert list(temporary.iterdir()) == []
    assert not marker.exists()


def test_a_clone_of_a_repository_as_deep_as_a_path_is_long_is_removed(tmp_path: Path) -> None:
    def git(*arguments: str, given: bytes = b"") -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, input=given, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    blob = git("hash-object", "-w", "--stdin", given=b"x = 1\n")
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},{'a/' * (sys.getrecursionlimit() + 200)}f.py")
    git("update-ref", "HEAD", git("commit-tree", "-m", "deep", git("write-tree")))
    for end in (lambda clone: clone.close(), lambda clone: remove(os.path.dirname(clone))):
        clone = clone_repo(str(tmp_path))
        end(clone)
        assert not os.path.exists(os.path.dirname(clone))
