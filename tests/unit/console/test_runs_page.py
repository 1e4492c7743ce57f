"""The pages of runs over histories that the real actors made: what they show, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from starlette.testclient import TestClient

from contracts.orchestra import PlanText
from contracts.orchestra_events import Captured, NetContact, TaskAttemptRequested, TaskExited
from events.event import Event
from pmagent.console.entrance import Visitor
from pmagent.console.jobs.desk import JobsAtHand
from pmagent.console.jobs.task import GIVEN_CHARS_MAX
from pmagent.layout import Layout
from projections.rebuild import documents_of
from tests.support.hostile import CORPUS, hostile_log
from tests.support.logged import flip, note, segments, write_log
from tests.support.orchestra import RUN, config, exited
from tests.support.pages import VISITOR, RunYard, assert_quiet, links, page, pages, recorded, text, written
from tests.support.run_folders import artifact, other

IDS = [f"00000000-0000-4000-8000-{number:012x}" for number in range(1, 14)]
"""The runs of the recorded history, the first first."""
ENDS = (
    "done", "failed", "failed", "planned", "done", "refused", "refused", "timed out", "cancelled", "refused", "done",
    "done", "stopped",
)  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Pages over a recorded life with runs of every kind."""
    with pages(recorded(tmp_path_factory.mktemp("runs"), "runs")) as client:
        yield client


def captured(content: bytes, total: int | None = None) -> Captured:
    """A stream of which this was kept."""
    size = len(content)
    return Captured(
        sha256=sha256(content).hexdigest(), size_bytes=size, total_bytes=total or size, cut=total is not None
    )


def told(stdout: bytes = b"", stderr: bytes = b"", code: int = 0, **more: Any) -> Any:
    """A tool that says this each time."""
    return lambda event: exited(event, code, stdout=captured(stdout), stderr=captured(stderr), **more)


def task_ids(yard: RunYard) -> dict[str, str]:
    """The tasks of the yard's run: name -> id."""
    return {
        one.name: one.task_id for event in yard.history if event.type == "tasks.planned" for one in event.data.tasks
    }


# --- the list ------------------------------------------------------------------------------------------------------


def test_the_list_is_newest_first_and_says_how_each_ended(lived: TestClient) -> None:
    shown = page(lived, "/runs")
    rows = [link for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
    assert rows == [f"/runs/{name}" for name in reversed(IDS)]
    states = re.findall(r'data-label="State"><span class="state [a-z]*"><span[^>]*>.</span>([a-z ]+)<', shown)
    assert states == list(reversed(ENDS))
    assert "the OA took the permit back: mode BLOCKED" in text(shown)


@pytest.mark.parametrize("state", ["done", "failed", "planned", "refused", "timed_out", "cancelled", "stopped", "open"])
def test_a_filter_of_states_is_in_the_address(lived: TestClient, state: str) -> None:
    shown = page(lived, f"/runs?state={state}")
    rows = [link.removeprefix("/runs/") for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
    assert rows == [name for name, end in zip(IDS, ENDS, strict=True) if end == state.replace("_", " ")][::-1]
    assert f'<option value="{state}" selected>' in shown
    assert rows or "No run is like that." in shown


def test_a_text_is_looked_for_in_intents(lived: TestClient) -> None:
    assert len(links(page(lived, "/runs?text=LIVE"))) > len(links(page(lived, "/runs?text=nowhere")))


@pytest.mark.parametrize(
    ("query", "says"),
    [("state=lost", "none of the states"), ("after=-1", "no whole number"), ("after=1e3", "no whole number"),
     ("after=" + "9" * 30, "no whole number"), ("after=%C2%B2", "no whole number"),
     ("text=" + "x" * 201, "at most 200")],
    ids=["state", "negative", "float", "huge", "superscript", "long_text"],
)  # fmt: skip
def test_an_address_that_is_not_understood_is_refused(lived: TestClient, query: str, says: str) -> None:
    answer = lived.get(f"/runs?{query}")
    assert answer.status_code == 400
    assert says in text(answer.text)


def test_pages_go_on_by_position(tmp_path: Path) -> None:
    yard = RunYard()
    for number in range(60):
        yard.request({"a": []}, other(number), plan_only=True)
        yard.run(other(number))
    with pages(written(tmp_path, yard.history)) as client:
        seen: list[str] = []
        address = "/runs?state=planned"
        for _ in range(2):
            shown = page(client, address)
            seen += [link for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
            address = next((link for link in links(shown) if "after=" in link), "")
        assert address == "", "there are two pages"
        assert seen == [f"/runs/{other(number)}" for number in reversed(range(60))]


def test_of_open_runs_the_list_says_how_far_they_are(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": [], "b": ["a"]}, other(0))
    yard.step()
    for number in range(1, 8):
        yard.request(None, other(number))
    with pages(written(tmp_path, yard.history)) as client:
        shown = page(client, "/runs")
        rows = re.findall(r'data-label="State"><span class="state busy"><span[^>]*>.</span>(\w+)<', shown)
        assert rows == ["planning"] * 5 + ["open"] * 3
        assert "1 of 2" not in shown, "only of the newest"
        newest = next(event.position for event in yard.history if event.id == other(1))
        assert '<td class="number tight" data-label="Done">1 of 2</td>' in page(client, f"/runs?after={newest}")


@pytest.mark.parametrize("damage", ["line", "head", "payload", "gone"])
def test_a_corrupt_log_is_told_and_other_pages_go_on(tmp_path: Path, damage: str) -> None:
    if damage == "payload":
        hostile_log(tmp_path)
        wrong = note(1, {"no": "run"}, type="run.requested", correlation=RUN)
        write_log(tmp_path, [wrong])
    else:
        recorded(tmp_path, "runs")
        (segment,) = segments(tmp_path)
        head = segment.parent / "HEAD"
        if damage == "gone":
            head.unlink()
        elif damage == "head":
            head.write_bytes(b"x" * head.stat().st_size)
        else:
            flip(segment, 200)
    with pages(tmp_path) as client:
        for address in ("/runs", "/audits", f"/runs/{IDS[1]}"):
            answer = client.get(address)
            assert answer.status_code == 500, address
            assert "the log is corrupt" in text(answer.text)
            assert_quiet(answer.text)
        assert client.get("/help").status_code == 200


def test_without_a_log_the_list_says_how_to_begin(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    with pages(tmp_path) as client:
        assert "No run yet." in page(client, "/runs")
        assert client.get(f"/runs/{RUN}").status_code == 404


# --- a run ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "end"), list(zip(IDS, ENDS, strict=True)), ids=[f"{n}" for n in range(1, 14)])
def test_a_page_of_a_run_says_how_it_ended_and_is_still_then(lived: TestClient, name: str, end: str) -> None:
    answer = lived.get(f"/runs/{name}")
    assert answer.status_code == 200
    assert answer.headers["x-orchestra-trace-id"] == name
    assert end in text(answer.text)
    assert 'data-live=""' in answer.text, "nothing comes any more"
    assert f"/log?correlation={name}" in links(answer.text)
    assert "Cancel this run" not in answer.text


def test_reasons_and_mends_are_told(lived: TestClient) -> None:
    shown = text(page(lived, f"/runs/{IDS[12]}"))
    assert "the OA took the permit back: mode BLOCKED" in shown
    assert "What would mend it: pmagent status shows the kernel's mode" in shown


def test_who_wanted_it_to_end_is_told(lived: TestClient) -> None:
    assert "An operator wanted it to end: cancelled by the operator" in text(page(lived, f"/runs/{IDS[8]}"))


def test_order_and_times_are_drawn_and_lead_to_the_tasks(lived: TestClient) -> None:
    shown = page(lived, f"/runs/{IDS[1]}")
    assert shown.count("<svg") == 2
    tasks = {link for link in links(shown) if "/tasks/" in link and "?" not in link}
    assert len(tasks) == 4
    for link in tasks:
        assert page(lived, link)
    assert re.search(r'class="bar retry".*class="bar waiting".*class="bar failed"', shown, re.DOTALL)


def test_a_task_that_never_ran_has_no_bar(lived: TestClient) -> None:
    assert page(lived, f"/runs/{IDS[3]}").count("<svg") == 1, "planned only: an order, no times"


def test_a_replanned_run_tells_of_both_plans(lived: TestClient) -> None:
    shown = text(page(lived, f"/runs/{IDS[11]}"))
    assert "Tasks that a later plan replaced wrong (revision 0): exit code 4" in shown


def test_the_beginning_of_an_id_leads_to_the_whole(lived: TestClient) -> None:
    answer = lived.get(f"/runs/{IDS[1][:-1]}2?tasks=failed")
    assert answer.status_code == 200
    answer = lived.get("/runs/00000000-0000-4000-8000-00000000000C?tasks=done")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{IDS[11]}?tasks=done")


@pytest.mark.parametrize(
    ("given", "says"),
    [("ffff", "there is no run whose id begins with"), ("00000000", "13 runs have ids that begin with"),
     ("no-such-id!", "is no run's id"), ("0" * 37, "is no run's id"), (other(9), "there is no run"),
     ("%1b%5b31m", "is no run's id"), ("%E2%80%AEgnp", "is no run's id")],
    ids=["unknown", "several", "no_id", "too_long", "whole", "colour", "bidi"],
)  # fmt: skip
def test_an_id_that_means_no_run_is_not_found(lived: TestClient, given: str, says: str) -> None:
    for address in (f"/runs/{given}", f"/runs/{given}/tasks/x", f"/runs/{given}/artifacts/{'0' * 64}/stdout"):
        answer = lived.get(address)
        assert answer.status_code == 404
        assert says in text(answer.text)
        assert_quiet(answer.text)


@pytest.mark.parametrize("query", ["tasks=lost", "from=x", "from=-1"])
def test_a_table_that_there_is_not_is_refused(lived: TestClient, query: str) -> None:
    assert lived.get(f"/runs/{IDS[1]}?{query}").status_code == 400


def test_the_table_of_tasks_is_filtered_and_paged(tmp_path: Path) -> None:
    yard = RunYard()
    yard.tool = lambda event: exited(event, 1 if event.data.task_id == failing[0] else 0)
    failing = [""]
    yard.request({f"t{n}": [] for n in range(230)}, config=config(workers=64, retries=0))
    failing[0] = task_ids(yard)["t7"]
    yard.run()
    with pages(written(tmp_path, yard.history)) as client:
        first, second = page(client, f"/runs/{RUN}"), page(client, f"/runs/{RUN}?from=200")
        assert "1 to 200 of 230" in text(first)
        assert "201 to 230 of 230" in text(second)
        assert f"/runs/{RUN}?from=200#tasks" in links(first)
        table = text(page(client, f"/runs/{RUN}?tasks=failed")).split("Tasks that are failed")[1]
        assert "t7" in table.split("All tasks")[0]
        assert "t8" not in table.split("All tasks")[0]


def cut(history: Sequence[Event], kind: type[msgspec.Struct]) -> Sequence[Event]:
    """What was there right after the first event of this kind."""
    return history[: next(number for number, event in enumerate(history, 1) if type(event.data) is kind)]


def test_an_open_run_is_drawn_up_to_its_newest_event_and_goes_on(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": [], "b": ["a"]})
    yard.run()
    open_ = cut(yard.history, TaskAttemptRequested)
    with pages(written(tmp_path, open_)) as client:
        shown = page(client, f"/runs/{RUN}")
        assert 'data-live="run.,plan,task,effect.,request.refused"' in shown
        assert "Drawn up to the run's newest event" in shown
        assert 'class="bar running"' in shown
        assert "Cancel this run" in shown
        written(tmp_path, yard.history[len(open_) :])
        over = page(client, f"/runs/{RUN}")
        assert 'class="bar running"' not in over
        assert over.count('class="bar done"') == 2
        assert 'data-live=""' in over


def test_only_who_may_approve_is_offered_to_cancel(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": []})
    viewer = Visitor("vera", "view", "session", "csrf", VISITOR.since)
    with pages(written(tmp_path, yard.history), viewer) as client:
        assert "Cancel" not in text(page(client, f"/runs/{RUN}"))


def test_many_who_follow_a_run_share_a_page_until_there_is_news(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": [], "b": ["a"]})
    yard.run()
    open_ = cut(yard.history, TaskAttemptRequested)
    jobs = JobsAtHand(Layout(written(tmp_path, open_)))
    first = jobs.run_page(RUN, "", 0)
    assert jobs.run_page(RUN, "", 0) is first
    assert jobs.run_page(RUN, "done", 0) is not first
    written(tmp_path, yard.history[len(open_) :])
    assert jobs.run_page(RUN, "", 0).word == "done"


def test_its_documents_are_those_of_the_workspace(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "runs")
    found = documents_of(workspace)
    with pages(workspace) as client:
        for name in IDS:
            shown = links(page(client, f"/runs/{name}"))
            for document in ("report.md", "plan.json", "metrics.json"):
                answer = client.get(f"/runs/{name}/{document}")
                expected = found.get(f"runs/{name}/{document}")
                assert (f"/runs/{name}/{document}" in shown) == (expected is not None)
                assert answer.status_code == (404 if expected is None else 200)
                assert expected is None or answer.content == expected
        assert client.get(f"/runs/{IDS[0]}/report.md").headers["repr-digest"].startswith("sha-256=:")
        assert client.get(f"/runs/{IDS[0]}/config.yaml").status_code == 404
        answer = client.get("/runs/00000000-0000-4000-8000-00000000000C/plan.json")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{IDS[11]}/plan.json")


def test_without_a_daemon_nothing_is_cancelled_and_that_is_told(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": []})
    with pages(written(tmp_path, yard.history), form={"reason": "why"}) as client:
        answer = client.post(f"/runs/{RUN}/cancel")
        assert answer.status_code == 503
        assert "The daemon is not reachable" in text(answer.text)
        assert client.post(f"/audits/{RUN}/cancel").status_code == 404


# --- a task --------------------------------------------------------------------------------------------------------


def test_a_task_shows_exactly_what_is_started(tmp_path: Path) -> None:
    arguments = ["-c", "two  blanks", "tab\there", "line\nbreak", "", "'quoted' $HOME"]
    yard = RunYard()
    yard.request(plan_of(arguments))
    yard.run()
    with pages(written(tmp_path, yard.history)) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(yard)['a']}")
    blocks = re.findall(r'<pre class="bytes"[^>]*>\n(.*?)</pre>', shown, re.DOTALL)
    seen = [re.sub(r"<[^>]+>", "", block) for block in blocks]
    assert seen[:7] == [
        "echo", "-c", "two··blanks", "tab⇥here", "line⏎\nbreak", "", "&#39;quoted&#39;·$HOME",
    ]  # fmt: skip


def plan_of(arguments: list[str], **more: Any) -> PlanText:
    """A plan of one task with these arguments."""
    inputs = {"args": arguments, "env": {"NAME": "a value"}}
    task = {"task_id": "a", "intent": "do a", "tools": ["echo"], "inputs": inputs, **more}
    return msgspec.convert({"tasks": [task]}, PlanText)


def test_what_a_task_is_given_is_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    arguments = ["x" * 1_000] * 100
    files = [{"path": "one", "content": " " * 60_000}, {"path": "two", "content": "y" * 60_000}]
    yard = RunYard()
    yard.request(plan_of(arguments, inputs={"args": arguments, "files": files, "env": {"A": "b" * 10_000}}))
    yard.run()
    with pages(written(tmp_path, yard.history)) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(yard)['a']}")
        left = [int(count) for count in re.findall(r"(\d+) more characters are left out here", shown)]
        assert sum(left) == 100 * 1_000 - GIVEN_CHARS_MAX + 10_000 + 2 * 60_000 - GIVEN_CHARS_MAX
        assert 'aria-label="Argument 100"' in shown, "each is there, if only to be counted"
        assert f"/runs/{RUN}/plan.json" in links(shown)
        assert len(shown) < 6_000_000


def test_many_neighbours_are_counted(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": [], **{f"b{n}": ["a"] for n in range(150)}, "c": [f"b{n}" for n in range(150)]})
    ids = task_ids(yard)
    with pages(written(tmp_path, yard.history)) as client:
        for name in "ac":
            shown = text(page(client, f"/runs/{RUN}/tasks/{ids[name]}"))
            assert "and 50 more" in shown


def test_output_is_shown_from_both_ends_and_the_cut_is_said(tmp_path: Path) -> None:
    content = b"begin\n" + b"x" * 300_000 + b"\nend"
    yard = RunYard()
    error = b"\x1b[31mred\xff\r\n"
    yard.tool = lambda event: exited(event, stdout=captured(content, 2_000_000), stderr=captured(error))
    yard.request({"a": []})
    yard.run()
    with pages(written(tmp_path, yard.history, [content, error])) as client:
        shown = page(client, f"/runs/{RUN}/tasks/{task_ids(yard)['a']}")
    head, tail, red = re.findall(r'<pre class="output"[^>]*aria-label="[^"]*std[^"]*">\n(.*?)</pre>', shown, re.DOTALL)
    assert (head[:6], len(head)) == ("begin\n", 65_536)
    assert (tail[-4:], len(tail)) == ("\nend", 65_536)
    assert "1.9 MiB written, of which 293.0 KiB were kept" in text(shown)
    assert "165.0 KiB are left out here" in text(shown)
    assert re.sub(r"<[^>]+>", "", red) == "U+001B[31mred\\xffU+000D\n"


def test_each_attempt_has_its_own_output(tmp_path: Path) -> None:
    says = [b"first", b"second"]
    yard = RunYard()
    yard.tool = lambda event: exited(
        event, int(event.data.attempt == 1), stdout=captured(says[event.data.attempt - 1]), last_lines=["no luck"]
    )
    yard.request({"a": []}, config=config(retries=1))
    yard.run()
    with pages(written(tmp_path, yard.history, says)) as client:
        address = f"/runs/{RUN}/tasks/{task_ids(yard)['a']}"
        newest, first = page(client, address), page(client, f"{address}?attempt=1")
        assert 'aria-label="stdout">\nsecond</pre>' in newest
        assert 'aria-label="stdout">\nfirst</pre>' in first
        assert "exit code 1: no luck" in text(first)
        for attempt in ("3", "x", "-1"):
            assert client.get(f"{address}?attempt={attempt}").status_code in (400, 404)


@pytest.mark.parametrize("damage", ["gone", "altered", "link"])
def test_output_that_is_damaged_is_told_and_not_shown(tmp_path: Path, damage: str) -> None:
    content = b"what was said"
    yard = RunYard()
    yard.tool = told(content)
    yard.request({"a": []})
    yard.run()
    with pages(written(tmp_path, yard.history, [content])) as client:
        name = sha256(content).hexdigest()
        blob = tmp_path / ".pmagent" / "blobs" / name[:2] / name
        blob.unlink()
        if damage == "altered":
            blob.write_bytes(b"what was sad!")
        elif damage == "link":
            (tmp_path / "elsewhere").write_bytes(content)
            blob.symlink_to(tmp_path / "elsewhere")
        shown = text(page(client, f"/runs/{RUN}/tasks/{task_ids(yard)['a']}"))
    assert "It cannot be shown" in shown
    assert ("there is no blob" if damage == "gone" else "its content is not what its name says") in shown
    assert "what was s" not in shown


def test_neighbours_are_named_and_linked(tmp_path: Path) -> None:
    yard = RunYard()
    yard.request({"a": [], "b": ["a"], "c": ["b"]})
    yard.run()
    ids = task_ids(yard)
    with pages(written(tmp_path, yard.history)) as client:
        found = links(page(client, f"/runs/{RUN}/tasks/{ids['b']}"))
        assert {f"/runs/{RUN}/tasks/{ids[name]}" for name in "ac"} <= set(found)
        assert client.get(f"/runs/{RUN}/tasks/{ids['b'][:8]}").status_code == 404
        answer = client.get(f"/runs/{RUN[:8]}/tasks/{ids['b']}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{RUN}/tasks/{ids['b']}")


# --- hostile texts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """Pages over a run for each text, in whose every field it stands; text -> the task of its run."""
    yard = RunYard()
    tasks: dict[str, str] = {}
    evil = {name: evil_of(name) for name in CORPUS}
    for number, said in enumerate(evil.values()):
        yard.tool = hostile_tool(said)
        plan = plan_of([said[:990]], intent=said, constraints={"max_retries": 1})
        yard.request(plan, other(number), intent=said, source=said)
        yard.run(other(number))
    for event in yard.history:
        if event.type == "tasks.planned":
            tasks[list(evil)[len(tasks)]] = event.data.tasks[0].task_id
    workspace = written(tmp_path_factory.mktemp("hostile"), yard.history, [said.encode() for said in evil.values()])
    with pages(workspace) as client:
        yield client, tasks


def evil_of(name: str) -> str:
    """A hostile text, with markup behind it."""
    return CORPUS[name][:900].replace("\0", "") + '<script>alert(1)</script><a href="https://evil.example">x</a>'


@pytest.mark.parametrize("name", CORPUS)
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
