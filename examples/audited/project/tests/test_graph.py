"""The whole graph, with a repository of our own and reviewers that answer what the test says."""

import subprocess

import pytest
from langchain_core.runnables import RunnableLambda

from depcheck import graph as module
from depcheck.state import Review
from depcheck.tools import CloneFailed


class Reviewers:
    """Stands in for a chat model: whoever is asked gives the same score."""

    def with_structured_output(self, schema):
        names = {"burnt": "sceptic", "believe": "advocate", "Monday": "maintainer"}

        def answer(asked):
            name = next(name for word, name in names.items() if word in asked[0][1])
            return schema(reviewer=name, score=4, reasons=["the facts say so"])

        return RunnableLambda(answer)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "LICENSE").write_text("MIT License\n")
    (tmp_path / "test_one.py").write_text("")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)
    return tmp_path


def test_a_repository_gets_a_verdict(repository, monkeypatch):
    monkeypatch.setattr(module, "clone", lambda url, folder: None)
    state = module.build(Reviewers()).invoke({"url": "https://example.org/a/b", "folder": str(repository)})
    assert state["verdict"].score == 4
    assert {fact.inspector for fact in state["facts"]} == {"licence", "activity", "tests"}
    assert all(isinstance(review, Review) for review in state["reviews"].values())


def test_a_clone_that_fails_ends_it_without_a_verdict(monkeypatch):
    def fail(url, folder):
        raise CloneFailed("no such repository")

    monkeypatch.setattr(module, "clone", fail)
    state = module.build(Reviewers()).invoke({"url": "https://example.org/a/b", "folder": "/nowhere"})
    assert state["problem"] == "no such repository"
    assert "verdict" not in state
