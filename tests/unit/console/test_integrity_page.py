"""The page Integrity: what the log's files are like, and checks of them that somebody asks for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.console.pages.reading.checking import Busy, Check, Checks
from pmagent.console.pages.views import integrity
from pmagent.console.paths import ConsolePaths
from pmagent.events.segments import segment_name
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.commands import owned, pmagent
from tests.support.console_pages import Page, Reader, assert_harmless, reading
from tests.support.consoles import console, live_host
from tests.support.logged import fill_log, flip, note, segments, write_log

PATIENCE = 60.0
HISTORY = Path(__file__).parents[2] / "histories" / "typing"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace whose log has several segments."""
    write_log(tmp_path, [note(n) for n in range(40)], 2_000)
    return tmp_path


def checked(workspace: Path, kind: Any, operator: str = "ada") -> Check:
    """A check, to its end."""
    paths = ConsolePaths(Layout(workspace))
    paths.prepare()
    checks = Checks(workspace, paths.folder)
    checks.begin(kind, operator)
    assert checks.wait(PATIENCE)
    found = checks.latest(kind)
    assert found is not None
    return found


@pytest.fixture
def browser(workspace: Path) -> Iterator[Reader]:
    """Somebody who looks at it."""
    with reading(workspace) as made:
        yield made


def test_segments_are_listed_with_their_positions(workspace: Path, browser: Reader) -> None:
    files = segments(workspace)
    page = browser.page("/integrity")
    found = Layout(workspace).store.stat()
    assert [one.name for one in reversed(found.parts)] == [path.name for path in files]
    edges = [(one.first, one.last) for one in reversed(found.parts)]
    assert edges[0][0] == 1
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(edges))
    assert edges[-1][1] == 41
    assert sum(one.bytes for one in found.parts) == sum(path.stat().st_size for path in files) == found.bytes
    assert [one.sealed for one in found.parts] == [False] + [True] * (len(files) - 1)
    for path in files:
        assert path.name in page.text
    assert page.text.count("sealed, read-only") == len(files) - 1


def test_both_slots_of_head_and_its_sum_are_shown(workspace: Path, browser: Reader) -> None:
    page = browser.page("/integrity")
    last = segments(workspace)[-1].read_bytes().rstrip(b"\n")[-66:-2].decode()
    assert last in page.text
    assert last in page.copied
    assert "Slot 0" in page.text
    assert "Slot 1" in page.text
    flip(Layout(workspace).log / "HEAD", 30)
    text = browser.page("/integrity").text
    assert "slot 0 of HEAD is damaged" in text
    flip(Layout(workspace).log / "HEAD", 600)
    assert "both of HEAD's slots are damaged" in browser.page("/integrity").text
    (Layout(workspace).log / "HEAD").unlink()
    assert "HEAD is missing" in browser.page("/integrity").text


def test_a_missing_first_segment_and_strange_files_are_told_of(workspace: Path, browser: Reader) -> None:
    folder = Layout(workspace).log
    (folder / f"{segment_name(1)}.torn-1").write_bytes(b"kept")
    assert "torn-1" in browser.page("/integrity").text
    segments(workspace)[0].unlink()
    assert "the first segment is missing" in browser.page("/integrity").text


def test_without_a_log_the_page_stands(tmp_path: Path) -> None:
    with reading(tmp_path) as browser:
        assert "There is no HEAD." in browser.page("/integrity").text


def test_a_snapshot_fits_or_is_passed_over_for_a_reason(tmp_path: Path) -> None:
    workspace = fresh_example(tmp_path / "w")
    assert pmagent(workspace, "oa", "snapshot").code == 0
    snapshot = Layout(workspace).snapshot
    with reading(workspace) as browser:
        assert "✓fits" in browser.page("/integrity").text
        raw = snapshot.read_bytes()
        snapshot.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        assert "passed over: it is damaged, or of another format" in browser.page("/integrity").text
        snapshot.unlink()
        assert "There is none." in browser.page("/integrity").text


def test_the_answer_is_that_of_the_command_with_who_asked(workspace: Path, browser: Reader) -> None:
    check = checked(workspace, "log", "grace")
    document = pmagent(workspace, "log", "verify", "--decode", "--format", "json").document
    assert {"path": document["path"], "distrust": document["distrust"], **check.result} == document
    assert (check.state, check.exit_code, check.operator) == ("done", 0, "grace")
    page = browser.page("/integrity")
    assert "✓intact: 41 events" in page.text
    assert "Exit code 0: done" in page.text
    assert "Asked for by grace" in page.text
    assert document["tail"]["sum"] in page.copied
    write_log(workspace, [note(77)])
    assert "1 event since" in browser.page("/integrity").text


def test_an_answer_of_another_log_is_not_taken_for_one_of_this(workspace: Path, browser: Reader) -> None:
    before = checked(workspace, "log").result["log_id"]
    folder = Layout(workspace).log
    folder.rename(workspace / "kept")
    assert "This says nothing of the log as it is now" in browser.page("/integrity").text
    fill_log(workspace, [note(n) for n in range(90)])
    text = browser.page("/integrity").text
    assert f"it is of another log, {before}" in text
    assert "✓intact" not in text
    shutil.rmtree(folder)
    (workspace / "kept").rename(folder)
    assert "✓intact: 41 events" in browser.page("/integrity").text


def test_a_comparison_with_another_log_says_nothing_of_the_one_that_lies_there(
    workspace: Path, browser: Reader
) -> None:
    checked(workspace, "documents")
    assert "✓equal: every document" in browser.page("/integrity").text
    folder = Layout(workspace).log
    folder.rename(workspace / "kept")
    fill_log(workspace, [note(n) for n in range(90)])
    text = browser.page("/integrity").text
    assert "The log that the documents were compared with is not what lies there: it is of another log" in text
    assert "✓equal" not in text
    shutil.rmtree(folder)
    (workspace / "kept").rename(folder)
    assert "✓equal: every document" in browser.page("/integrity").text


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("position", 99, "the log went up to 99 then, and ends with 41"), ("sum", "0" * 64, "the sum at 41 is another")],
    ids=["shorter", "made-anew"],
)
def test_an_answer_of_a_log_that_was_made_anew_says_nothing_of_it(
    workspace: Path, browser: Reader, name: str, value: object, says: str
) -> None:
    check = checked(workspace, "log")
    other = msgspec.structs.replace(check, result={**check.result, "tail": {**check.result["tail"], name: value}})
    (ConsolePaths(Layout(workspace)).folder / "check-log.json").write_bytes(msgspec.json.encode(other))
    text = browser.page("/integrity").text
    assert says in text
    assert "✓intact" not in text


def test_a_corrupt_log_is_named_by_file_offset_and_position(workspace: Path, browser: Reader) -> None:
    first = segments(workspace)[0]
    offset = sum(len(line) + 1 for line in first.read_bytes().split(b"\n")[:3])
    flip(first, offset + 50)
    check = checked(workspace, "log")
    assert (check.exit_code, check.result["finding"]["position"]) == (4, 4)
    page = browser.page("/integrity")
    assert f"{first.name}, byte {offset}, position 4" in page.text
    assert page.links("/log/4")
    assert "the log is corrupt" in page.text, "what exit code 4 means"
    assert "pmagent log export --until 3" in page.text


def test_a_sum_that_was_noted_elsewhere_is_held_against_the_log(workspace: Path, browser: Reader) -> None:
    sum_ = _events(workspace)[6]["sum"]
    assert "equal: the log up to 7 is what it was" in browser.page(f"/integrity?at=7&sum={sum_.upper()}").text
    page = browser.page(f"/integrity?at=7&sum={'0' * 64}")
    assert "differs: at 7 the log has" in page.text
    assert sum_ in page.text
    for address, word in (
        ("?at=7", "64 hexadecimal digits"), (f"?sum={sum_}", "a position"), (f"?at=x&sum={sum_}", "a position"),
        (f"?at=99&sum={sum_}", "the log has no position 99"), (f"?at=7&sum={sum_}0", "64 hexadecimal digits"),
        (f"?at={'9' * 5000}&sum=%1b", "64 hexadecimal digits"),
    ):  # fmt: skip
        assert word in browser.page(f"/integrity{address}", 400).text, address
    flip(segments(workspace)[0], 60)
    assert "the log is corrupt" in browser.page(f"/integrity?at=1&sum={sum_}", 400).text


def test_documents_are_compared_with_the_log(tmp_path: Path) -> None:
    shutil.copytree(HISTORY, tmp_path / ".pmagent")
    check = checked(tmp_path, "documents")
    assert (check.state, check.exit_code) == ("done", 1)
    with reading(tmp_path) as browser:
        page = browser.page("/integrity")
        assert "STATE.json" in page.text
        assert "documents are not what the log says" in page.text
        assert pmagent(owned(tmp_path), "rebuild").code == 0
        state = tmp_path / "share" / "orchestrator_assistant" / "STATE.json"
        state.write_bytes(state.read_bytes().replace(b'"version"', b'"\x1b]0;<b>"'))
        assert checked(tmp_path, "documents").result["count"] == 1
        page = browser.page("/integrity")
        assert "1 document is not what the log says" in page.text
        assert "<b>" in page.text
        assert pmagent(tmp_path, "rebuild").code == 0
        assert checked(tmp_path, "documents").exit_code == 0


def test_a_check_that_comes_to_no_answer_says_so(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    check = checked(tmp_path, "log")
    assert (check.state, check.exit_code) == ("failed", 1)
    assert "there is no log" in check.text
    with reading(tmp_path) as browser:
        page = browser.page("/integrity")
        assert "No answer" in page.text
        assert "there is no log" in page.text


def test_one_check_goes_on_at_a_time_and_is_seen(
    workspace: Path, browser: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = workspace / "wait"
    os.mkfifo(waiting)
    child = f"import os; os.write(1, b'{{\"done\":5,\"of\":10}}\\n'); open({str(waiting)!r}).read()"
    monkeypatch.setattr("pmagent.console.pages.reading.checking.COMMAND", ("-c", child))
    browser.context.paths.prepare()
    checks = integrity.checks_of(browser.context)
    checks.begin("log", "ada")
    with pytest.raises(Busy, match="the log is being checked already, for ada"):
        checks.begin("documents", "grace")
    assert checks.wait_for_news(PATIENCE), "it has said how far it is"
    page = browser.page("/integrity")
    assert "5 B of 10 B checked" in page.text
    assert page.one("progress")["value"] == "5"
    assert [found for found in page.all("button", class_="act") if "disabled" not in found] == []
    assert 'http-equiv="refresh"' in page.source
    waiting.open("w").close()
    assert checks.wait(PATIENCE)
    ended = checks.latest("log")
    assert ended is not None
    assert ended.state == "failed", "it ended without an answer"
    assert "its process ended without an answer" in browser.page("/integrity").text


def test_answers_outlive_the_console_and_what_is_damaged_of_them_counts_for_nothing(workspace: Path) -> None:
    check = checked(workspace, "log")
    paths = ConsolePaths(Layout(workspace))
    again = Checks(workspace, paths.folder)
    assert again.latest("log") == check
    kept = paths.folder / "check-log.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_bytes(msgspec.json.encode({"kind": "log"}))
    assert again.latest("log") is None
    assert again.latest("documents") is None


def test_who_only_looks_has_no_form(workspace: Path) -> None:
    with reading(workspace, "view") as browser:
        forms = browser.page("/integrity").all("form")
        assert not [found for found in forms if found.get("action", "").startswith("/integrity/")]


def test_a_check_is_asked_for_by_who_may_and_seen_by_all(tmp_path: Path) -> None:
    workspace = fresh_example(tmp_path / "w")
    with live_host(workspace) as host, console(workspace) as ada:
        for address, kind in (("/integrity/verify", "log"), ("/integrity/documents", "documents")):
            answer = ada.post(address)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/integrity#{kind}")
            assert integrity.checks_of(ada.context).wait(PATIENCE)
            assert ada.post(address, csrf="x").status_code == 403
            assert ada.get(address).status_code == 405
        page = Page(ada.page("/integrity"))
        assert_harmless(page)
        assert "✓intact" in page.text
        assert "✓equal: every document on disk is what the log says" in page.text
        assert page.text.count("Asked for by ada") == 2
        recorded = [event for event in _events(workspace) if event["type"] == "console.checked"]
        assert [(event["data"]["operator_id"], event["data"]["what"]) for event in recorded] == [
            ("ada", "log"), ("ada", "documents"),
        ]  # fmt: skip
        assert recorded[0]["data"]["sum"] == _events(workspace)[recorded[0]["data"]["position"] - 1]["sum"]
        assert [event["data"]["exit_code"] for event in recorded] == [0, 0]
        assert host.position > recorded[-1]["position"] - 1
        with console(workspace, "vera", "view") as vera:
            assert vera.post("/integrity/verify").status_code == 403
            assert "Asked for by ada" in Page(vera.page("/integrity")).text


def _events(workspace: Path) -> list[dict[str, Any]]:
    """The log's lines."""
    return [msgspec.json.decode(line) for path in segments(workspace) for line in path.read_bytes().splitlines()]


def test_what_cannot_be_recorded_is_told(browser: Reader) -> None:
    browser.context.paths.prepare()
    checks = integrity.checks_of(browser.context)
    checks.begin("log", "ada")
    assert checks.wait(PATIENCE)
    page = browser.page("/integrity")
    assert "✓intact" in page.text
    assert "it is not in the log: " in page.text


def test_where_no_process_can_be_started_nothing_is_begun(browser: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    answer = browser.client.post("/integrity/verify")
    assert answer.status_code == 409
    assert "no process can be started that checks" in answer.text
    assert integrity.checks_of(browser.context).running is None


def test_an_answer_that_cannot_be_kept_is_told_all_the_same(workspace: Path) -> None:
    checks = Checks(workspace, workspace / "nowhere")
    checks.begin("log", "ada")
    assert checks.wait(PATIENCE)
    check = checks.latest("log")
    assert check is not None
    assert check.result["ok"]
    assert "could not be kept" in check.hint


def test_what_cannot_be_read_is_told_and_the_rest_stands(workspace: Path, browser: Reader) -> None:
    Layout(workspace).snapshot.mkdir(parents=True)
    page = browser.page("/integrity")
    assert "Not everything could be read" in page.text
    assert "Slot 0" in page.text


def test_each_decision_is_made_again_and_what_would_be_another_is_counted_and_shown(tmp_path: Path) -> None:
    shutil.copytree(HISTORY, tmp_path / ".pmagent")
    owned(tmp_path)
    found = checked(tmp_path, "replay")
    assert (found.state, found.exit_code, found.result["ok"]) == ("done", 0, True), found
    assert found.result["decisions"] > 0
    with reading(tmp_path) as reader:
        assert f"{found.result['decisions']} decisions of {found.result['events']} events were made again" in (
            reader.page("/integrity").text
        )
    forged = tmp_path / "forged"
    write_log(forged, [
        note(1), note(2, {"mode": "NORMAL", "previous": None, "reasons": [], "phase": "1", "branch": "main",
                          "digest": "0" * 64}, type="kernel.mode_decided", actor="kernel", causation=1, decision=True),
    ])  # fmt: skip
    found = checked(forged, "replay")
    assert (found.exit_code, found.result["ok"]) == (3, False), found
    with reading(forged) as reader:
        page = reader.page("/integrity")
        assert "would be others by the code that runs now" in page.text or found.result["stopped"]
