"""The reasoning commands with a model: through the gateway to a provider's real client, alone and with a daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import Ran, spawn
from tests.support.daemons import running
from tests.support.provider import Answer, Provider, completion, error, provider
from tests.support.reasoning import proceeding

pytestmark = pytest.mark.slow  # a provider's client takes seconds to import

KEY = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz"
ASKED = ("oa", "decision", "Add a page to the manual", "--engine", "langchain", "--model", "openai:gpt-x")


@pytest.fixture(scope="module", autouse=True)
def preloaded() -> None:
    """Commands and daemons find imported what takes a second each time."""
    warm.preload(*warm.OPENAI)


@pytest.fixture(params=[False, True], ids=["alone", "daemon"])
def daemon(request: pytest.FixtureRequest) -> bool:
    """Whether a daemon holds the log."""
    return bool(request.param)


@contextmanager
def served(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, *answers: Answer, daemon: bool = False
) -> Iterator[Provider]:
    """A provider with these answers, its key and address in the environment of commands and daemon."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with provider(*answers) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with running(workspace) if daemon else nullcontext():
            yield server


def asked(workspace: Path, *more: str) -> Ran:
    """The command as a process, as people run it."""
    return spawn(*ASKED, *more, cwd=workspace)


def test_a_models_answer_is_the_commands_answer(workspace: Path, monkeypatch: pytest.MonkeyPatch, daemon: bool) -> None:
    with served(workspace, monkeypatch, completion(proceeding(rationale="the model looked")), daemon=daemon) as server:
        done = asked(workspace)
    assert done.code == 0, done.errors
    assert (done.document["decision"], done.document["reasoning"]) == ("ALLOW", "the model looked")
    assert server.keys == [f"Bearer {KEY}"]
    log = b"".join(file.read_bytes() for file in (workspace / ".pmagent").rglob("*") if file.is_file())
    assert b"model.replied" in log
    assert KEY.encode() not in log
    assert spawn("replay", cwd=workspace).code == 0, "without a provider"


def test_no_model_allows_what_the_facts_forbid(workspace: Path, monkeypatch: pytest.MonkeyPatch, daemon: bool) -> None:
    with served(workspace, monkeypatch, completion(proceeding()), daemon=daemon) as server:
        done = spawn("oa", "decision", "git push the branch", *ASKED[3:], "--constraint", "no_git_push", cwd=workspace)
    assert (done.code, done.document["decision"]) == (1, "DENY")
    assert len(server.seen) <= 1


def test_a_blocked_kernel_asks_no_model(workspace: Path, monkeypatch: pytest.MonkeyPatch, daemon: bool) -> None:
    (workspace / "share" / "SSOT_SURFACE_V17.json").unlink()
    with served(workspace, monkeypatch, completion(proceeding()), daemon=daemon) as server:
        done = asked(workspace)
    assert (done.code, done.document["decision"]) == (1, "DENY")
    assert server.seen == []


def test_what_does_not_fit_is_asked_for_again(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = (completion("no JSON"), completion('{"allowed_action": "MAYBE"}'), completion(proceeding()))
    with served(workspace, monkeypatch, *answers) as server:
        done = asked(workspace)
    assert (done.code, done.document["decision"]) == (0, "ALLOW")
    assert len(server.seen) == 3


def test_a_model_that_never_fits_fails_and_denies(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(workspace, monkeypatch, *[completion("no JSON")] * 3):
        done = asked(workspace, "--bridge")
    assert done.code == 1
    assert done.document["status"] == "FAILED"
    assert done.document["decision"]["allowed_action"] == "ABORT"


def test_a_provider_that_refuses_is_replaced_by_the_rules_where_that_is_wanted(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, daemon: bool
) -> None:
    with served(workspace, monkeypatch, error(401), error(401), daemon=daemon):
        fallen = asked(workspace, "--fallback")
        failed = asked(workspace, "--no-fallback")
    assert (fallen.code, fallen.document["decision"]) == (0, "ALLOW")
    assert any("the rules answered instead" in text for text in fallen.document["warnings"])
    assert (failed.code, failed.document["decision"]) == (1, "DENY")
    assert KEY not in json.dumps([fallen.document, failed.document])
