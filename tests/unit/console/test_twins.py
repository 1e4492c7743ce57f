"""Each view offers the command that shows the same: there is such a command, it takes those arguments, and the lists of
both hold the same."""

from __future__ import annotations

import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, get_args

import click
import pytest

from pmagent.console.app import VIEWS
from pmagent.contracts.orchestra_events import RunState
from pmagent.edges import SECTIONS
from pmagent.jobs.kinds import AUDITS, RUNS
from tests.support.approving import ASKING, proposed
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.console_pages import Page
from tests.support.consoles import Console, LiveHost
from tests.support.orchestra import RUN
from tests.support.pages import RunHarness, page, pages, recorded, written

AUDIT: Final = "00000000-0000-4000-8000-000000000001"
NAMED: Final = re.compile(r"pmagent( [a-z-]+)+( |$)")
"""A command, and not merely the name of the program."""


class Codes(HTMLParser):
    """The texts that a page shows as ``code``."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False
        self.feed(source)

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        if tag == "code":
            self._inside = True
            self.found.append("")

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        if self._inside:
            self.found[-1] += data

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        self._inside = self._inside and tag != "code"


def commands(source: str) -> list[str]:
    """Every command line that a page shows or offers to copy."""
    shown = [text.removeprefix("$ ").strip() for text in Codes(source).found]
    return [line for line in (*shown, *Page(source).copied) if NAMED.match(line)]


def understood(workspace: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program takes this command line, as far as its arguments go; nothing of it is done."""
    with monkeypatch.context() as patched:
        patched.setattr(click.Command, "invoke", lambda *_: 0)
        patched.chdir(workspace)  # where it is typed
        name, *argv = shlex.split(line)
        assert name == "pmagent"
        answer = pmagent(workspace, *argv)
    assert answer.code == 0, (line, answer.errors)


def test_what_is_checked_here_is_a_usage_error_where_it_is_wrong(
    host: LiveHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in ("pmagent runs --no-such", "pmagent no-such", "pmagent log no-such", "pmagent log tail --after x"):
        with pytest.raises(AssertionError):
            understood(host.workspace, line, monkeypatch)


def test_every_page_of_a_live_workspace_names_commands_that_there_are(
    host: LiveHost, bob: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = proposed(host)
    name, session = made["proposal_id"], made["session_id"]
    addresses = [
        *(section.address for section in SECTIONS), "/?change=mode", "/?change=stop", f"/approvals/{name}",
        f"/approvals/{name}?decide=approve", f"/approvals/{name}?decide=reject", f"/sessions/{session}",
        "/sessions?kind=oa", "/log/3", "/runs?state=failed&text=-x&after=9", "/audits?state=open&text=a+b",
        "/approvals?stands=open&by=ada&outcome=executed",
        "/log?type=pla.*&exclude=hid.*&actor=brain&correlation=x&field=kind%3Dfact&grep=a&since=pos:2&until=pos:90&n=7",
        "/log?before=20&n=5", "/log?after=3&n=5",
    ]  # fmt: skip
    assert len(SECTIONS) >= 8
    for address in addresses:
        found = commands(bob.get(address, follow_redirects=True).text)
        assert found, address
        for line in found:
            understood(host.workspace, line, monkeypatch)


def test_every_page_of_jobs_names_commands_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    runs, audits = written(tmp_path / "runs", harness.history), recorded(tmp_path / "audits", "audits")
    with pages(runs) as of_runs, pages(audits) as of_audits:
        run = page(of_runs, f"/runs/{RUN}")
        task = re.search(rf'href="(/runs/{RUN}/tasks/[^"?#]+)', run)
        assert task is not None
        shown = [(runs, run), (runs, page(of_runs, task[1])), (audits, page(of_audits, f"/audits/{AUDIT}"))]
    for workspace, source in shown:
        found = commands(source)
        assert found
        for line in found:
            understood(workspace, line, monkeypatch)


def test_the_states_that_lists_are_asked_for_are_those_that_there_are() -> None:
    assert set(RUNS.states) == {"open", "refused", *get_args(RunState)}
    assert {"now", "runs", "audits"} <= {view.rpartition(".")[2] for view in VIEWS}


@each("kind", [RUNS, AUDITS])
def test_a_list_of_jobs_and_its_command_hold_the_same(tmp_path: Path, kind: Any) -> None:
    name = f"{kind.word}s"
    workspace = recorded(tmp_path, name)
    counts = []
    with pages(workspace) as client:
        for query in ("", "?text=E", "?text=nowhere", "?after=200", *(f"?state={state}" for state in kind.states)):
            shown = page(client, f"/{name}{query}")
            (line, *_) = Page(shown).copied
            listed = pmagent(workspace, *shlex.split(line)[1:], "--format", "json").document[name]
            found = dict.fromkeys(re.findall(rf' href="/{name}/([0-9a-f-]{{36}})"', shown))
            assert [one[f"{kind.word}_id"] for one in listed] == list(found), query
            counts.append(len(listed))
    assert 0 < counts[3] < counts[0] == sum(counts[4:]), "each is in one state"
    assert f"no such {name}" in pmagent(workspace, name, "--text", "nowhere").text
    refused = pmagent(workspace, name, "0000", "--state", "open")
    assert refused.code == 2, "open is no state of a part of one"


def test_a_list_of_proposals_and_its_command_hold_the_same(host: LiveHost, bob: Console) -> None:
    proposed(host)
    proposed(host)
    for query in ("", "?stands=open", "?stands=closed", f"?by={ASKING}", "?by=nobody", "?outcome=rejected"):
        shown = bob.page(f"/approvals{query}")
        (line, *_) = [line for line in Page(shown).copied if line.startswith("pmagent pla list")]
        listed = pmagent(host.workspace, *shlex.split(line)[1:], "--format", "json").document["proposals"]
        found = dict.fromkeys(re.findall(r'href="/approvals/(prop-[0-9a-f]{32})"', shown))
        assert {one["proposal_id"] for one in listed} == set(found), query
    assert "no such proposals" in pmagent(host.workspace, "pla", "list", "--by", "nobody").text


@each("address", ["/runs?text=", "/audits?text=", "/approvals?by=", "/log?grep="])
def test_a_command_that_would_be_copied_as_another_is_not_offered(bob: Console, address: str) -> None:
    (line,) = Page(bob.page(f"{address}abc")).copied
    assert "abc" in line
    assert Page(bob.page(f"{address}a%E2%80%AEb%1Bc")).copied == []
