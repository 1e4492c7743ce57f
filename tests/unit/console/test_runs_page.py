"""The pages of runs over histories that the real actors made: what they show, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.jobs.cache import JobCache
from pmagent.console.pages.jobs.run import Asked
from pmagent.contracts.orchestra_events import TaskAttemptRequested
from pmagent.events.event import Event, time_after
from pmagent.events.log import now
from pmagent.when import seconds_between
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.hostile import hostile_log
from tests.support.logged import flip, note, segments, write_log
from tests.support.orchestra import RUN, config, exited
from tests.support.page_runs import task_ids
from tests.support.pages import VISITOR, RunHarness, assert_quiet, links, page, pages, recorded, text, written
from tests.support.rebuilt import documents_of
from tests.support.run_folders import other

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


# --- the list ------------------------------------------------------------------------------------------------------


def test_the_list_is_newest_first_and_says_how_each_ended(lived: TestClient) -> None:
    shown = page(lived, "/runs")
    rows = [link for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
    assert rows == [f"/runs/{name}" for name in reversed(IDS)]
    states = re.findall(r'data-label="State"><span class="state [a-z]*"><span[^>]*>.</span>([a-z ]+)<', shown)
    assert states == list(reversed(ENDS))
    assert "the OA took the permit back: mode BLOCKED" in text(shown)


@each("state", ["done", "failed", "planned", "refused", "timed_out", "cancelled", "stopped", "open"])
def test_a_filter_of_states_is_in_the_address(lived: TestClient, state: str) -> None:
    shown = page(lived, f"/runs?state={state}")
    rows = [link.removeprefix("/runs/") for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
    assert rows == [name for name, end in zip(IDS, ENDS, strict=True) if end == state.replace("_", " ")][::-1]
    assert f'<option value="{state}" selected>' in shown
    assert rows or "No run is like that." in shown


def test_a_text_is_looked_for_in_intents(lived: TestClient) -> None:
    assert len(links(page(lived, "/runs?text=LIVE"))) > len(links(page(lived, "/runs?text=nowhere")))


@each(
    "query, says",
    [("state=lost", "not known here"), ("after=-1", "no whole number"), ("after=1e3", "no whole number"),
     ("after=" + "9" * 30, "no whole number"), ("after=%C2%B2", "no whole number"),
     ("text=" + "x" * 201, "at most 200")],
)  # fmt: skip
def test_an_address_that_is_not_understood_is_refused(lived: TestClient, query: str, says: str) -> None:
    answer = lived.get(f"/runs?{query}")
    assert answer.status_code == 400
    assert says in text(answer.text)


def test_pages_go_on_by_position(tmp_path: Path) -> None:
    harness = RunHarness()
    for number in range(60):
        harness.request({"a": []}, other(number), plan_only=True)
        harness.run(other(number))
    with pages(written(tmp_path, harness.history)) as client:
        seen: list[str] = []
        address = "/runs?state=planned"
        for _ in range(2):
            shown = page(client, address)
            seen += [link for link in links(shown) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)]
            address = next((link for link in links(shown) if "after=" in link), "")
        assert address == "", "there are two pages"
        assert seen == [f"/runs/{other(number)}" for number in reversed(range(60))]


def test_of_open_runs_the_list_says_how_far_they_are(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"]}, other(0))
    harness.step()
    for number in range(1, 8):
        harness.request(None, other(number))
    with pages(written(tmp_path, harness.history)) as client:
        shown = page(client, "/runs")
        rows = re.findall(r'data-label="State"><span class="state busy"><span[^>]*>.</span>(\w+)<', shown)
        assert rows == ["planning"] * 5 + ["open"] * 3
        assert "1 of 2" not in shown, "only of the newest"
        newest = next(event.position for event in harness.history if event.id == other(1))
        assert '<td class="number tight" data-label="Done">1 of 2</td>' in page(client, f"/runs?after={newest}")


@each("damage", ["line", "head", "payload", "gone"])
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


@each("name, end", list(zip(IDS, ENDS, strict=True)))
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
    assert shown.count("<svg xmlns") == 2
    tasks = {link for link in links(shown) if "/tasks/" in link and "?" not in link}
    assert len(tasks) == 4
    for link in tasks:
        assert page(lived, link)
    assert re.search(r'class="bar retry".*class="bar waiting".*class="bar failed"', shown, re.DOTALL)


def test_a_task_that_never_ran_has_no_bar(lived: TestClient) -> None:
    assert page(lived, f"/runs/{IDS[3]}").count("<svg xmlns") == 1, "planned only: an order, no times"


def test_a_replanned_run_tells_of_both_plans(lived: TestClient) -> None:
    shown = text(page(lived, f"/runs/{IDS[11]}"))
    assert "Tasks that a later plan replaced wrong (revision 0): exit code 4" in shown


def test_the_beginning_of_an_id_leads_to_the_whole(lived: TestClient) -> None:
    answer = lived.get(f"/runs/{IDS[1][:-1]}2?tasks=failed")
    assert answer.status_code == 200
    answer = lived.get("/runs/00000000-0000-4000-8000-00000000000C?tasks=done")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{IDS[11]}?tasks=done")


@each(
    "given, says",
    [("ffff", "there is no run whose id begins with"), ("00000000", "13 runs have ids that begin with"),
     ("no-such-id!", "is no run's id"), ("0" * 37, "is no run's id"), (other(9), "there is no run"),
     ("%1b%5b31m", "is no run's id"), ("%E2%80%AEgnp", "is no run's id")],
)  # fmt: skip
def test_an_id_that_means_no_run_is_not_found(lived: TestClient, given: str, says: str) -> None:
    for address in (f"/runs/{given}", f"/runs/{given}/tasks/x", f"/runs/{given}/artifacts/{'0' * 64}/stdout"):
        answer = lived.get(address)
        assert answer.status_code == 404
        assert says in text(answer.text)
        assert_quiet(answer.text)


@each("query", ["tasks=lost", "from=x", "from=-1"])
def test_a_table_that_there_is_not_is_refused(lived: TestClient, query: str) -> None:
    assert lived.get(f"/runs/{IDS[1]}?{query}").status_code == 400


def test_the_table_of_tasks_is_filtered_and_paged(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.tool = lambda event: exited(event, 1 if event.data.task_id == failing[0] else 0)
    failing = [""]
    harness.request({f"t{n}": [] for n in range(230)}, config=config(workers=64, retries=0))
    failing[0] = task_ids(harness)["t7"]
    harness.run()
    with pages(written(tmp_path, harness.history)) as client:
        summary = page(client, f"/runs/{RUN}")
        assert "exit code 1" in text(summary), "failures stand first"
        assert "Tasks, in the plan's order" not in text(summary), "a long run has a page for each part"
        first, second = page(client, f"/runs/{RUN}?tab=tasks"), page(client, f"/runs/{RUN}?from=200")
        assert "1 to 200 of 230" in text(first)
        assert "201 to 230 of 230" in text(second)
        assert f"/runs/{RUN}?tab=tasks&from=200#tasks" in links(first)
        found = text(page(client, f"/runs/{RUN}?tab=tasks&find=t22"))
        assert "t220" in found
        assert "t219" not in found
        table = text(page(client, f"/runs/{RUN}?tasks=failed")).split("Tasks that are failed")[1]
        assert "t7" in table.split("All tasks")[0]
        assert "t8" not in table.split("All tasks")[0]


def test_tasks_of_a_long_run_stand_by_state_failures_first_and_ten_of_them_unfolded(tmp_path: Path) -> None:
    harness = RunHarness()
    failing: set[str] = set()
    harness.tool = lambda event: exited(event, int(event.data.task_id in failing))
    after = {f"t{n}": [f"t{n + 15}"] if n < 15 else [] for n in range(60)}  # 15 wait for the next 15, which fail
    harness.request(after, config=config(workers=64, retries=0))
    failing |= {id for name, id in task_ids(harness).items() if 15 <= int(name[1:]) < 30}
    harness.run()
    with pages(written(tmp_path, harness.history)) as client:
        shown = page(client, f"/runs/{RUN}?tab=tasks")
        failed, done = shown.index('id="tasks-failed" open'), shown.index('id="tasks-done"><summary>')
        assert failed < done
        assert "failed 30" in text(shown)
        assert "20 more" in text(shown)
        rows = re.findall(r'<th scope="row"><a href="[^"]+">(t[0-9]+)</a>', shown)
        assert set(rows[:15]) == {f"t{n}" for n in range(15, 30)}, "those that were begun come first"
        in_order = page(client, f"/runs/{RUN}?order=plan")
        found = re.findall(r'<th scope="row"><a href="[^"]+">(t[0-9]+)</a>', in_order)
        assert (found[:4], len(found)) == (["t15", "t0", "t16", "t1"], 60), "each right behind what it waits for"
        assert 'id="tasks-failed"' not in in_order
        assert client.get(f"/runs/{RUN}?order=shortest").status_code == 400


def cut(history: Sequence[Event], kind: type[msgspec.Struct]) -> Sequence[Event]:
    """The history right after the first event of this kind."""
    return history[: next(number for number, event in enumerate(history, 1) if type(event.data) is kind)]


def test_an_open_run_is_drawn_up_to_now_and_goes_on(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    open_ = cut(harness.history, TaskAttemptRequested)
    with pages(written(tmp_path, open_)) as client:
        shown = page(client, f"/runs/{RUN}")
        assert 'data-live="run.,plan,task,effect.,request.refused"' in shown
        assert "Drawn up to now" in shown
        assert "data-again" in shown, "it is looked at again also while nothing happens"
        assert 'class="bar running"' in shown
        assert "Cancel this run" in shown
        written(tmp_path, harness.history[len(open_) :])
        over = page(client, f"/runs/{RUN}")
        assert 'class="bar running"' not in over
        assert over.count('class="bar done"') == 2
        assert 'data-live=""' in over


def test_what_runs_is_told_up_to_now_also_while_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    open_ = cut(harness.history, TaskAttemptRequested)
    jobs = JobCache(Layout(written(tmp_path, open_)))
    for seconds, expected in ((0.0, "1m 30s"), (2.0, "2m 00s")):
        later = time_after(open_[-1].time, 90.0 + 15.0 * seconds)
        monkeypatch.setattr("pmagent.console.pages.jobs.run.now", lambda later=later: later)
        monkeypatch.setattr("pmagent.console.pages.jobs.cache.time.monotonic", lambda seconds=seconds: seconds)
        page_now = jobs.run_page(RUN, Asked())
        assert page_now.took == expected
        assert page_now.tasks[0].took == expected
        assert expected in page_now.order
        assert expected in page_now.times


def test_countdowns_go_by_the_time_of_a_log_that_lies_ahead_of_the_clock(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    ahead = seconds_between(harness.history[-1].time, now()) + 3600
    events = [msgspec.structs.replace(event, time=time_after(event.time, ahead)) for event in harness.history]
    with pages(written(tmp_path, events)) as client:
        found = re.search(r'data-now="([^"]+)"', page(client, f"/runs/{RUN}"))
    assert found is not None
    assert found[1] >= events[-1].time


def test_only_who_may_approve_is_offered_to_cancel(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    viewer = Visitor("vera", "view", "session", "csrf", VISITOR.since)
    with pages(written(tmp_path, harness.history), viewer) as client:
        assert "Cancel" not in text(page(client, f"/runs/{RUN}"))


def test_many_who_follow_a_run_share_a_page_until_there_is_news(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    open_ = cut(harness.history, TaskAttemptRequested)
    jobs = JobCache(Layout(written(tmp_path, open_)))
    first = jobs.run_page(RUN, Asked())
    assert jobs.run_page(RUN, Asked()) is first
    assert jobs.run_page(RUN, Asked(state="done")) is not first
    written(tmp_path, harness.history[len(open_) :])
    assert jobs.run_page(RUN, Asked()).word == "done"


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
    harness = RunHarness()
    harness.request({"a": []})
    with pages(written(tmp_path, harness.history), form={"reason": "why"}) as client:
        answer = client.post(f"/runs/{RUN}/cancel")
        assert answer.status_code == 503
        assert "The daemon is not reachable" in text(answer.text)
        assert client.post(f"/audits/{RUN}/cancel").status_code == 404
