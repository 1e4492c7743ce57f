"""Runs on the console of a live workspace: watched, ended by an operator, and what they left taken away."""

from __future__ import annotations

import re
import uuid
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import RunCancelRequested
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import Follower, events
from pmagent.jobs.history import opened
from pmagent.workspace.trust import accept_also, within_run
from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.orchestra import config, plan
from tests.support.pages import links, text
from tests.support.sandboxes import needs_sandbox

SETTINGS = "whitelist_tools: [echo, sh, sleep]\n"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live workspace."""
    with live_host(fresh_example(tmp_path_factory.mktemp("live") / "workspace")) as lived:
        accept_also(lived.workspace, within_run(config(SETTINGS), lived.workspace))
        yield lived


@pytest.fixture(scope="module")
def ada(host: LiveHost) -> Iterator[Console]:
    """An operator who may approve."""
    with console(host.workspace, "ada") as made:
        yield made


@pytest.fixture(scope="module")
def vera(host: LiveHost) -> Iterator[Console]:
    """An operator who may only look."""
    with console(host.workspace, "vera", "view") as made:
        yield made


def run(host: LiveHost, given: PlanText, **more: Any) -> str:
    """Ask for a run; its id."""
    name = str(uuid.uuid4())
    asked = {"run_id": name, "intent": "live", "config": config(SETTINGS), "plan": given, **more}
    host.perform("orchestra.run", **msgspec.to_builtins(asked))
    return name


def open_run(host: LiveHost) -> str:
    """A run that goes on until it is stopped."""
    name = run(host, plan({"slow": [], "after": ["slow"]}, slow={"tools": ["sleep"], "inputs": {"args": ["600"]}}))
    found(host, "task.attempt_requested", name)
    return name


def found(host: LiveHost, type: str, correlation: str = "") -> Event:
    """The first event of this type (of this correlation), once there is one."""
    with opened(host.host.layout) as jobs:
        for news in Follower(jobs.storage).follow():
            for stored in news if isinstance(news, Sequence) else ():
                assert (stored.type, stored.correlation) != ("run.refused", correlation), stored.data
                if stored.type == type and correlation in ("", stored.correlation):
                    return typed(stored, jobs.blobs)
    raise AssertionError("following does not end")


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    (value,) = re.findall(f'<input type="hidden" name="{name}" value="([^"]*)">', page)
    return str(value)


@needs_sandbox
def test_an_operator_ends_a_run_once_and_is_named(host: LiveHost, ada: Console) -> None:
    name = open_run(host)
    page = ada.page(f"/runs/{name}")
    assert "Cancel this run" in text(page)
    fields = {"reason": "it hangs", "request": hidden(page, "request")}
    first, second = (ada.post(f"/runs/{name}/cancel", **fields) for _ in range(2))
    assert [one.status_code for one in (first, second)] == [303, 303], "a double click is one click"
    assert first.headers["location"] == f"/runs/{name}"
    assert found(host, "run.ended", name).data.state == "cancelled"
    asked = RunCancelRequested(run_id=name, reason="it hangs", operator_id="ada", channel="console")
    with opened(host.host.layout) as jobs:
        wanted = [typed(one, jobs.blobs).data for one in events(jobs.storage) if one.type == "run.cancel_requested"]
    assert wanted == [asked]
    shown = text(ada.page(f"/runs/{name}"))
    assert "ada (console) wanted it to end: it hangs" in shown
    assert "Cancel this run" not in shown
    late = ada.post(f"/runs/{name}/cancel", reason="of an old page")
    assert late.status_code == 409
    assert "The run was not cancelled" in text(late.text)


@needs_sandbox
def test_an_operator_runs_a_run_again_all_of_it_or_only_what_is_not_done(
    host: LiveHost, ada: Console, vera: Console
) -> None:
    badly = {"tools": ["sh"], "inputs": {"args": ["-c", "exit 1"]}}
    name = run(host, plan({"well": [], "badly": []}, badly=badly))
    assert found(host, "run.ended", name).data.state == "failed"
    form = ada.page(f"/runs/{name}")
    new = hidden(form, "run")
    first, second = (ada.post(f"/runs/{name}/rerun", run=new, failed="yes") for _ in range(2))
    assert [one.headers["location"] for one in (first, second)] == [f"/runs/{new}"] * 2, "a double click is one click"
    asked = found(host, "run.requested", new).data
    assert (asked.operator_id, asked.channel, asked.earlier.run_id) == ("ada", "console", name)
    assert list(asked.earlier.done) == ["well"]
    assert found(host, "run.ended", new).data.state == "failed"
    shown = ada.page(f"/runs/{new}")
    assert "Asked for by ada over console" in text(shown)
    assert f"/runs/compare?a={name}&b={new}" in links(shown)
    whole = hidden(shown, "run")
    assert ada.post(f"/runs/{new}/rerun", run=whole).status_code == 303
    assert not found(host, "run.requested", whole).data.earlier.done
    assert found(host, "run.ended", whole).data.failed == 1
    assert vera.post(f"/runs/{name}/rerun", run=str(uuid.uuid4())).status_code == 403
    assert "Run it again" not in text(vera.page(f"/runs/{name}"))
    assert ada.post(f"/runs/{name}/rerun", run="no-id").status_code == 400


@needs_sandbox
def test_what_is_open_cannot_be_run_again(host: LiveHost, ada: Console) -> None:
    name = open_run(host)
    answer = ada.post(f"/runs/{name}/rerun", run=str(uuid.uuid4()))
    assert answer.status_code == 409
    assert "is not over" in text(answer.text)
    host.perform("orchestra.cancel", run_id=name)
    found(host, "run.ended", name)


@needs_sandbox
def test_what_a_real_program_wrote_is_shown_and_taken_away(host: LiveHost, ada: Console) -> None:
    script = "printf '\\033[31mred\\n'; echo oops >&2; echo kept > $ARTIFACTS/file.txt; exit 3"
    given = plan({"a": []}, a={"tools": ["sh"], "inputs": {"args": ["-c", script]}, "constraints": {"max_retries": 0}})
    name = run(host, given)
    found(host, "run.ended", name)
    (address,) = {link for link in links(ada.page(f"/runs/{name}")) if "/tasks/" in link and "?" not in link}
    shown = ada.page(address)
    assert "U+001B [31mred" in text(shown)
    assert "oops" in text(shown)
    assert "exit code 3: oops" in text(shown)
    (file,) = {link for link in links(shown) if link.endswith("/file.txt")}
    assert ada.get(file).content == b"kept\n"


@pytest.fixture(scope="module")
def over(host: LiveHost) -> str:
    """A run that is over; nothing was started for it."""
    name = run(host, plan({"a": []}, a={"tools": ["sh"]}), dry_run=True)
    found(host, "run.ended", name)
    return name


@each(
    "fields, says",
    [({}, "has to be said"), ({"reason": "  "}, "has to be said"), ({"reason": "x" * 1_001}, "at most 1000 characters"),
     ({"reason": "why", "request": "audit.cancel-1"}, "none of ours")],
)  # fmt: skip
def test_a_cancellation_without_sense_asks_nobody(
    host: LiveHost, ada: Console, over: str, fields: dict[str, str], says: str
) -> None:
    ada.csrf()
    before = host.position
    answer = ada.post(f"/runs/{over}/cancel", **fields)
    assert answer.status_code == 400
    assert says in text(answer.text)
    assert host.position == before


def test_who_may_only_look_ends_nothing(host: LiveHost, vera: Console, over: str) -> None:
    before = host.position
    assert vera.post(f"/runs/{over}/cancel", reason="no").status_code == 403
    assert host.position == before


def test_a_form_of_another_place_ends_nothing(host: LiveHost, ada: Console, over: str) -> None:
    token = ada.csrf()
    before = host.position
    assert ada.post(f"/runs/{over}/cancel", origin="https://evil.example", csrf=token, reason="x").status_code == 403
    assert ada.post(f"/runs/{over}/cancel", csrf="0" * 64, reason="x").status_code == 403
    assert ada.get(f"/runs/{over}/cancel").status_code == 405
    assert host.position == before


def test_no_run_of_that_name_is_not_found(ada: Console) -> None:
    answer = ada.post(f"/runs/{uuid.uuid4()}/cancel", reason="x")
    assert answer.status_code == 404


def test_pages_need_somebody_who_has_signed_in(host: LiveHost, ada: Console, over: str) -> None:
    nobody = Console(host.workspace)
    for address in ("/runs", f"/runs/{over}", f"/runs/{over}/tasks/x", f"/runs/{over}/artifacts/{'0' * 64}/stdout"):
        answer = nobody.get(address)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in")
    assert ada.get("/runs").status_code == 200


def test_what_a_run_left_can_be_taken_away(ada: Console, over: str) -> None:
    (address,) = {link for link in links(ada.page(f"/runs/{over}")) if "/artifacts/" in link}
    answer = ada.get(address)
    assert answer.content == b"[dry run] nothing was started\n"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["content-disposition"].startswith('attachment; filename="stdout"')
    digest = b64encode(sha256(answer.content).digest()).decode()
    assert answer.headers["repr-digest"] == f"sha-256=:{digest}:"
    policies = answer.headers.get_list("content-security-policy")
    assert any("sandbox" in policy for policy in policies)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-orchestra-trace-id"] == over


def test_the_file_of_one_run_is_not_had_from_another(host: LiveHost, ada: Console, over: str) -> None:
    other = run(host, plan({"b": []}), plan_only=True)
    found(host, "run.ended", other)
    (address,) = {link for link in links(ada.page(f"/runs/{over}")) if "/artifacts/" in link}
    assert ada.get(address.replace(over, other)).status_code == 404


def test_a_run_shows_the_id_that_finds_it_in_the_log(ada: Console, over: str) -> None:
    answer = ada.get(f"/runs/{over}")
    assert answer.headers["x-orchestra-trace-id"] == over
    assert ada.get("/runs").headers["x-orchestra-trace-id"] != over
