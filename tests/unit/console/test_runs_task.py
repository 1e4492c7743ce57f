"""The page of a task: exactly what is started, what each attempt wrote, and hostile texts that stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from pmagent.console.pages.jobs.task import GIVEN_CHARS_MAX
from pmagent.contracts.orchestra import NetContact
from pmagent.contracts.orchestra_events import TaskExited
from pmagent.events.event import Event
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.hostile import CORPUS
from tests.support.orchestra import RUN, config, exited
from tests.support.page_runs import captured, plan_of, task_ids, told
from tests.support.pages import RunHarness, assert_quiet, links, page, pages, text, written
from tests.support.run_folders import artifact, other


def test_a_task_shows_exactly_what_is_started(tmp_path: Path) -> None:
    arguments = ["-c", "two  blanks", "tab\there", "line\nbreak", "", "'quoted' $HOME"]
    harness = RunHarness()
    harness.request(plan_of(arguments))
    harness.run()
    with pages(written(tmp_path, harness.history)) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(harness)['a']}")
    blocks = re.findall(r'<pre class="bytes"[^>]*>\n(.*?)</pre>', shown, re.DOTALL)
    seen = [re.sub(r"<[^>]+>", "", block) for block in blocks]
    assert seen[:7] == [
        "echo", "-c", "two··blanks", "tab⇥here", "line⏎\nbreak", "", "&#39;quoted&#39;·$HOME",
    ]  # fmt: skip


def test_what_a_task_is_given_is_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    arguments = ["x" * 1_000] * 100
    files = [{"path": "one", "content": " " * 60_000}, {"path": "two", "content": "y" * 60_000}]
    harness = RunHarness()
    harness.request(plan_of(arguments, inputs={"args": arguments, "files": files, "env": {"A": "b" * 10_000}}))
    harness.run()
    with pages(written(tmp_path, harness.history)) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(harness)['a']}")
        left = [int(count) for count in re.findall(r"(\d+) more characters are left out here", shown)]
        assert sum(left) == 100 * 1_000 - GIVEN_CHARS_MAX + 10_000 + 2 * 60_000 - GIVEN_CHARS_MAX
        assert 'aria-label="Argument 100"' in shown, "each is there, if only to be counted"
        assert f"/runs/{RUN}/plan.json" in links(shown)
        assert len(shown) < 6_000_000


def test_many_neighbours_are_counted(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], **{f"b{n}": ["a"] for n in range(150)}, "c": [f"b{n}" for n in range(150)]})
    ids = task_ids(harness)
    with pages(written(tmp_path, harness.history)) as client:
        for name in "ac":
            shown = text(page(client, f"/runs/{RUN}/tasks/{ids[name]}"))
            assert "and 50 more" in shown


def test_output_is_shown_from_both_ends_and_the_cut_is_said(tmp_path: Path) -> None:
    content = b"begin\n" + b"x" * 300_000 + b"\nend"
    harness = RunHarness()
    error = b"\x1b[31mred\xff\r\n"
    harness.tool = lambda event: exited(event, stdout=captured(content, 2_000_000), stderr=captured(error))
    harness.request({"a": []})
    harness.run()
    with pages(written(tmp_path, harness.history, [content, error])) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(harness)['a']}")
    head, tail, red = re.findall(r'<pre class="output"[^>]*aria-label="[^"]*std[^"]*">\n(.*?)</pre>', shown, re.DOTALL)
    assert (head[:6], len(head)) == ("begin\n", 65_536)
    assert (tail[-4:], len(tail)) == ("\nend", 65_536)
    assert "1.9 MiB written, of which 293.0 KiB were kept" in text(shown)
    assert "165.0 KiB are left out here" in text(shown)
    assert re.sub(r"<[^>]+>", "", red) == "U+001B[31mred\\xffU+000D\n"


def test_each_attempt_has_its_own_output(tmp_path: Path) -> None:
    says = [b"first", b"second"]
    harness = RunHarness()
    harness.tool = lambda event: exited(
        event, int(event.data.attempt == 1), stdout=captured(says[event.data.attempt - 1]), last_lines=["no luck"]
    )
    harness.request({"a": []}, config=config(retries=1))
    harness.run()
    with pages(written(tmp_path, harness.history, says)) as client:
        address = f"/runs/{RUN}/tasks/{task_ids(harness)['a']}"
        newest, first = page(client, address), page(client, f"{address}?attempt=1")
        assert 'aria-label="stdout">\nsecond</pre>' in newest
        assert 'aria-label="stdout">\nfirst</pre>' in first
        assert "exit code 1: no luck" in text(first)
        for attempt in ("3", "x", "-1"):
            assert client.get(f"{address}?attempt={attempt}").status_code in (400, 404)


@each("damage", ["gone", "altered", "link"])
def test_output_that_is_damaged_is_told_and_not_shown(tmp_path: Path, damage: str) -> None:
    content = b"what was said"
    harness = RunHarness()
    harness.tool = told(content)
    harness.request({"a": []})
    harness.run()
    with pages(written(tmp_path, harness.history, [content])) as client:
        name = sha256(content).hexdigest()
        blob = Layout(tmp_path).blobs / name[:2] / name
        blob.unlink()
        if damage == "altered":
            blob.write_bytes(b"what was sad!")
        elif damage == "link":
            (tmp_path / "elsewhere").write_bytes(content)
            blob.symlink_to(tmp_path / "elsewhere")
        shown = text(page(client, f"/runs/{RUN}/tasks/{task_ids(harness)['a']}"))
    assert "It cannot be shown" in shown
    why = {"gone": "there is no blob", "altered": "its content is not what its name says", "link": "no regular file"}
    assert why[damage] in shown
    assert "what was s" not in shown


def test_neighbours_are_named_and_linked(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"], "c": ["b"]})
    harness.run()
    ids = task_ids(harness)
    with pages(written(tmp_path, harness.history)) as client:
        found = links(page(client, f"/runs/{RUN}/tasks/{ids['b']}"))
        assert {f"/runs/{RUN}/tasks/{ids[name]}" for name in "ac"} <= set(found)
        assert client.get(f"/runs/{RUN}/tasks/{ids['b'][:8]}").status_code == 404
        answer = client.get(f"/runs/{RUN[:8]}/tasks/{ids['b']}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{RUN}/tasks/{ids['b']}")


# --- hostile texts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """Pages over a run for each text, in whose every field it stands; text -> the task of its run."""
    harness = RunHarness()
    tasks: dict[str, str] = {}
    evil = {name: evil_of(name) for name in CORPUS}
    for number, said in enumerate(evil.values()):
        harness.tool = hostile_tool(said)
        plan = plan_of([said[:990]], intent=said, constraints={"max_retries": 1})
        harness.request(plan, other(number), intent=said, source=said)
        harness.run(other(number))
    for event in harness.history:
        if event.type == "tasks.planned":
            tasks[list(evil)[len(tasks)]] = event.data.tasks[0].task_id
    workspace = written(tmp_path_factory.mktemp("hostile"), harness.history, [said.encode() for said in evil.values()])
    with pages(workspace) as client:
        yield client, tasks


def evil_of(name: str) -> str:
    """A hostile text, with markup behind it."""
    return CORPUS[name][:900].replace("\0", "") + '<script>alert(1)</script><a href="https://evil.example">x</a>'


@each("name", CORPUS)
def test_hostile_texts_stay_texts_on_every_page(hostile: tuple[TestClient, dict[str, str]], name: str) -> None:
    client, tasks = hostile
    run = f"/runs/{other(list(CORPUS).index(name))}"
    for address in ("/runs", "/runs?text=evil", f"/runs?text={quote(evil_of(name)[:100])}", run):
        assert_quiet(page(client, address))
    shown = page(client, f"{run}/tasks/{tasks[name]}")
    assert_quiet(shown)
    assert "evil.example" in text(shown), "it is told all the same"


def hostile_tool(evil: str) -> Any:
    """A tool whose every text is this."""

    def tool(event: Event) -> TaskExited:
        contact = NetContact(
            host=evil[:100], port=1, address=evil[:40], verdict="refused", reason=evil[:200], bytes_out=0, bytes_in=0
        )
        return exited(
            event, 3, last_lines=[evil], stdout=captured(evil.encode()), notes=[evil], violations=[evil], exceeded=evil,
            artifacts=[artifact(event.data.task_id, "plain", evil.encode())], contacts=[contact],
        )  # fmt: skip

    return tool
