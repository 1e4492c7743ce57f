"""The pages of sessions: which there were, what was done in them, and whether their logs are what they must be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.reading import oa_story, pla_story, session_list
from pmagent.events.event import Draft
from pmagent.events.reader import event_at
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import owned, pmagent
from tests.support.console_pages import Page, Reader, reading
from tests.support.effort import some
from tests.support.hostile import CORPUS
from tests.support.logged import fill_log, flip, note, write_log

HISTORY = Path(__file__).parents[2] / "histories" / "typing"
SESSION = "pla-265dac8f72767643f96ecabc129ccefb"
OUTSIDE = "outside-8"
OTHER = "pla-00000000000000000000000000000002"
BOOTED = "oa-session-00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the recorded session of the PLA, and its documents."""
    made = tmp_path_factory.mktemp("recorded") / "w"
    shutil.copytree(HISTORY, made / ".pmagent")
    assert pmagent(owned(made), "rebuild").code == 0
    return made


@pytest.fixture
def workspace(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return owned(shutil.copytree(recorded, tmp_path / "w"))


@pytest.fixture(scope="module")
def browser(recorded: Path) -> Iterator[Reader]:
    """Somebody who looks at it."""
    with reading(recorded) as made:
        yield made


def log_of(workspace: Path, name: str = SESSION) -> Path:
    """A session log on disk."""
    return workspace / "sessions" / f"{name}.jsonl"


def began(session_id: str, **more: Any) -> dict[str, Any]:
    """The data of an event with which a session begins."""
    return {"session_id": session_id, "operator_id": "alice", "mode": "OBSERVE", **more}


# --- lists -----------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_with_how_they_ended(browser: Reader) -> None:
    page = browser.page("/sessions")
    assert page.links("/sessions/") == [f"/sessions/{SESSION}", f"/sessions/{OUTSIDE}"]
    assert "✓complete" in page.text
    assert "bob" in page.text
    assert "No session yet." in browser.page("/sessions?kind=oa").text
    assert "No session before that." in browser.page("/sessions?before=5").text


def test_older_sessions_are_a_page_further_and_their_ends_are_known_there(tmp_path: Path) -> None:
    drafts = []
    for number in range(60):
        name = f"pla-{number:032x}"
        drafts.append(note(2 * number, began(name), type="pla.session_began", correlation=name))
        data = {"session_id": name, "state": "complete", "reason": f"reason {number}"}
        drafts.append(note(2 * number + 1, data, type="pla.session_ended", correlation=name))
    late = [drafts.pop(3)]
    fill_log(tmp_path, [*drafts, *late])
    with reading(tmp_path) as browser:
        page = browser.page("/sessions")
        assert len(page.links("/sessions/pla-")) == session_list.COUNT
        (older,) = [link for link in page.links("/sessions?kind=pla") if "before" in link]
        page = browser.page(older)
        assert page.links("/sessions/pla-") == [f"/sessions/pla-{number:032x}" for number in range(9, -1, -1)]
        assert "reason 1 " in page.text + " ", "it ended behind what this page shows"
        assert "◦open" not in page.text.replace(" ", "")


def test_where_there_was_no_time_the_list_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = note(0, began(OTHER), type="pla.session_began", correlation=OTHER)
    fill_log(tmp_path, [first, *(note(n) for n in range(1, 1200))])
    monkeypatch.setattr(session_list, "LOOK_SECONDS", 0.0)
    with reading(tmp_path) as browser:
        page, looks = browser.page("/sessions"), 0
        while not page.links(f"/sessions/{OTHER}"):
            assert "no time to look further back" in page.text
            page = browser.page(next(link for link in page.links("/sessions?kind=pla&before=")))
            looks += 1
            assert looks < 5
        assert looks == 2


def test_a_log_that_is_corrupt_behind_older_sessions_leaves_their_ends_unknown(tmp_path: Path) -> None:
    end = {"session_id": OTHER, "state": "complete", "reason": "told too late"}
    middle = [note(n) for n in range(1, 40)]
    fill_log(tmp_path, [
        note(0, began(OTHER), type="pla.session_began", correlation=OTHER), *middle,
        note(50, end, type="pla.session_ended", correlation=OTHER),
    ])  # fmt: skip
    (segment,) = Layout(tmp_path).log.glob("*.jsonl")
    flip(segment, sum(len(line) + 1 for line in segment.read_bytes().split(b"\n")[:19]) + 60)
    with reading(tmp_path) as browser:
        page = browser.page("/sessions?before=10")
        assert page.links(f"/sessions/{OTHER}")
        assert "◦open" in page.text.replace(" ", "")
        assert "Not everything could be looked at" in browser.page("/sessions").text


@each("address", ["?kind=x", "?before=0", "?before=x", "?before=" + "9" * 5000])
def test_what_cannot_be_meant_is_refused(browser: Reader, address: str) -> None:
    browser.page(f"/sessions{address}", 400)


# --- one of the PLA --------------------------------------------------------------------------------------------------


def test_the_log_of_a_session_is_checked_and_equal_to_the_log(browser: Reader, recorded: Path) -> None:
    page = browser.page(f"/sessions/{SESSION}")
    lines = log_of(recorded).read_text().splitlines()
    assert f"intact: the session log, {len(lines)} entries, chained, and equal to the workspace's log" in page.text
    assert "intact: its violations, 3 entries, chained, and equal to the workspace's log" in page.text
    assert json.loads(lines[-1])["checksum"] in page.copied
    assert f"pmagent pla verify-log sessions/{SESSION}.jsonl" in page.copied
    for line in lines:
        assert f"/log/{json.loads(line)['details']['position']}" in page.links("/log/")


def test_what_was_typed_stands_there_as_the_log_has_it(browser: Reader) -> None:
    page = browser.page(f"/sessions/{SESSION}")
    assert 'echo·"hello"⏎' in page.text
    assert page.text.count("all reports were handed to USB") >= 4
    assert "?unknown" in page.text, "an outcome that nobody can tell"
    for proposal in ("prop-6f1be0ecbdd3cba6ecead0726277c60c", "prop-8b548235c19cf8f16fe9a55daf983590"):
        assert f"/approvals/{proposal}" in page.links("/approvals/")
    assert "a US keyboard cannot type" in page.text, "a violation"
    assert "complete the session has ended; proposals: 9" in page.text, "its job"


def test_entries_come_in_pages(browser: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pla_story, "ENTRIES_SHOWN", 25)
    numbers = []
    address = f"/sessions/{SESSION}"
    while address:
        page = browser.page(address)
        (table,) = [source for source in page.source.split("<table") if "entry by entry" in source]
        numbers += [int(part.split()[0]) for part in table.split('<th scope="row">')[1:]]
        address = next((link["href"] for link in page.all("a", rel="next")), "")
    assert numbers == list(range(1, 61))


def test_what_was_said_outside_of_sessions_has_a_page(browser: Reader) -> None:
    page = browser.page(f"/sessions/{OUTSIDE}")
    assert "entries outside of any session" in page.text
    assert "not held against the workspace's log here" in page.text


def _flipped(path: Path) -> None:
    flip(path, 3000)


def _cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))


def _made_anew(path: Path) -> None:
    """Another session log, whole in itself."""
    path.write_bytes(log_of(path.parent.parent, OUTSIDE).read_bytes())


def _no_json(path: Path) -> None:
    path.write_bytes(b"\x1b[31m<script>\xff\n" + path.read_bytes())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_flipped, "not intact: the session log, line 6"), (_cut, "3 entries more: the end was cut off"),
        (_made_anew, "the log says something else here: the file was made anew"),
        (_no_json, "not intact: the session log, line 1"),
    ],
)  # fmt: skip
def test_every_change_to_a_session_log_is_told(workspace: Path, change: Any, words: str) -> None:
    change(log_of(workspace))
    with reading(workspace) as browser:
        page = browser.page(f"/sessions/{SESSION}")
        assert words in page.text
        if change is not _cut:
            assert "not verified" in page.text


def test_a_typing_error_of_an_operator_is_no_alarm(browser: Reader) -> None:
    """Two of the three answer an operator: a goal with é, and a goal in OBSERVE."""
    source = browser.page(f"/sessions/{SESSION}").source
    section = source[source.index('id="violations"') :].partition("</section>")[0]
    assert (section.count("notice info"), section.count("notice bad"), section.count("notice warn")) == (2, 1, 0)
    assert section.index("notice bad") < section.index("missing field") < section.index("notice info")


def test_violations_that_were_changed_or_taken_away_are_told(workspace: Path) -> None:
    path = log_of(workspace, f"{SESSION}.violations")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with reading(workspace) as browser:
        assert "not intact: its violations, line 3" in browser.page(f"/sessions/{SESSION}").text
        path.unlink()
        assert "there is no file of them" in browser.page(f"/sessions/{SESSION}").text


def test_a_session_log_that_is_gone_or_a_link_is_told_and_the_rest_stands(workspace: Path, tmp_path: Path) -> None:
    path = log_of(workspace)
    content = path.read_bytes()
    path.unlink()
    with reading(workspace) as browser:
        assert "there is no session log" in browser.page(f"/sessions/{SESSION}").text
        assert browser.get(f"/sessions/{SESSION}/log").status_code == 404
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
        page = browser.page(f"/sessions/{SESSION}")
        assert "The session log was not looked at" in page.text
        assert "✓executed" in page.text
        path.unlink()
        path.mkdir()
        assert "The session log was not looked at" in browser.page(f"/sessions/{SESSION}").text


def test_a_session_log_is_downloaded_as_it_lies_there(browser: Reader, recorded: Path) -> None:
    answer = browser.get(f"/sessions/{SESSION}/log")
    assert answer.content == log_of(recorded).read_bytes()
    assert "attachment" in answer.headers["content-disposition"]


@each("name", ["nobody-knows-it", "..%2f..%2fetc", "%1b%5b31m", "x", "a" * 300, "oa-session-none"])
def test_a_session_that_nobody_knows_is_not_found(browser: Reader, name: str) -> None:
    for address in (f"/sessions/{name}", f"/sessions/{name}/log", f"/sessions/{name}/frames/18"):
        assert browser.get(address).status_code == 404, address


def test_a_session_that_stands_and_whose_log_is_behind_is_no_alarm(workspace: Path) -> None:
    write_log(workspace, [
        note(900, began(OTHER), type="pla.session_began", actor="warden", correlation=OTHER, decision=True),
        note(901, {
            "session_id": OTHER, "previous": "OBSERVE", "mode": "SUGGEST", "who": "ada", "channel": "cli",
            "code": "requested", "why": "x",
        }, type="pla.mode_changed", actor="warden", correlation=OTHER, decision=True),
    ])  # fmt: skip
    assert pmagent(workspace, "rebuild").code == 0
    path = log_of(workspace, OTHER)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with reading(workspace) as browser:
        page = browser.page(f"/sessions/{OTHER}")
        assert "behind" in page.text
        assert "not intact" not in page.text


def test_a_log_that_is_corrupt_within_the_session_is_told_and_its_file_shown(workspace: Path) -> None:
    (segment,) = Layout(workspace).log.glob("*.jsonl")
    flip(segment, sum(len(line) + 1 for line in segment.read_bytes().split(b"\n")[:99]) + 40)
    with reading(workspace) as browser:
        page = browser.page(f"/sessions/{SESSION}")
        assert "The log could not be gone through" in page.text
        assert "not held against the workspace's log here" in page.text


def test_where_there_was_no_time_for_all_of_a_session_the_page_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_log(tmp_path, [
        note(0, began(OTHER), type="pla.session_began", correlation=OTHER),
        note(1, {"session_id": BOOTED, "mode": "NORMAL"}, type="oa.session_booted"),
        *(note(n, {"text": "x" * 1000}) for n in range(2, 900)),
    ])  # fmt: skip
    monkeypatch.setattr(pla_story, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(oa_story, "LOOK_SECONDS", 0.0)
    with reading(tmp_path) as browser:
        for name in (BOOTED, OTHER):
            assert "there was no time to look further" in browser.page(f"/sessions/{name}", 404).text
    monkeypatch.setattr(pla_story, "began", lambda storage, *_: event_at(storage, 2))
    monkeypatch.setattr(oa_story, "began", lambda storage, *_: event_at(storage, 3))
    with reading(tmp_path) as browser:
        for name in (BOOTED, OTHER):
            assert "there was no time for more" in browser.page(f"/sessions/{name}").text


# --- frames ----------------------------------------------------------------------------------------------------------


def pictures(page: Page) -> list[str]:
    """The addresses of a page's pictures."""
    return [found["src"] for found in page.all("img")]


def test_frames_are_shown_and_served_as_what_they_are(browser: Reader) -> None:
    found = pictures(browser.page(f"/sessions/{SESSION}"))
    assert found == [f"/sessions/{SESSION}/frames/22", f"/sessions/{SESSION}/frames/18"]
    answer = browser.get(found[0])
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")
    assert "sandbox" in answer.headers["content-security-policy"]


@each("position", ["19", "17", "1", "9999", "x", "0", "9" * 5000])
def test_nothing_else_is_served_as_a_frame(browser: Reader, position: str) -> None:
    assert browser.get(f"/sessions/{SESSION}/frames/{position}").status_code == 404


def test_a_frame_of_another_session_is_not_served(browser: Reader) -> None:
    assert browser.get(f"/sessions/{OTHER}/frames/18").status_code == 404
    assert browser.get(f"/sessions/{OUTSIDE}/frames/18").status_code == 404


@each("content", [b"<script>alert(1)</script>", b"<svg/>", b"GIF89a", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_not_served_whatever_the_log_calls_it(tmp_path: Path, content: bytes) -> None:
    from pmagent.events.blobs import BlobStore
    from pmagent.events.disk import RealDisk

    (tmp_path / ".pmagent").mkdir()
    digest = BlobStore(RealDisk(), str(Layout(tmp_path).blobs)).put(content)
    frame = {"sha256": digest, "media_type": "image/png", "kept": True, "name": "x.png", "size": len(content)}
    write_log(tmp_path, [
        note(0, frame, type="pla.frame_observed"),
        note(1, {"session_id": OTHER, "frame": 2}, type="pla.observed"),
        note(2, frame | {"kept": False}, type="pla.frame_observed"),
        note(3, {"session_id": OTHER, "frame": 4}, type="pla.observed"),
    ])  # fmt: skip
    with reading(tmp_path) as browser:
        answer = browser.get(f"/sessions/{OTHER}/frames/2")
        assert answer.status_code == 404
        assert b"is no picture" in answer.content
        assert browser.get(f"/sessions/{OTHER}/frames/4").status_code == 404, "it was not kept"


def test_what_is_too_large_for_a_picture_is_not_even_read(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.console.pages.views.frames.BYTES_MAX", 100)
    with reading(recorded) as browser:
        answer = browser.get(f"/sessions/{SESSION}/frames/18")
        assert answer.status_code == 404
        assert b"larger than a picture may be" in answer.content


def test_a_session_log_that_is_too_long_for_a_page_is_left_to_the_command(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pla_story, "LOG_BYTES_MAX", 1000)
    with reading(recorded) as browser:
        page = browser.page(f"/sessions/{SESSION}")
        assert "longer than a page takes" in page.text
        assert f"pmagent pla verify-log sessions/{SESSION}.jsonl" in page.text
        assert "✓executed" in page.text


# --- of the OA -------------------------------------------------------------------------------------------------------

def test_a_session_of_the_oa_shows_mode_drift_end_and_the_permits_of_its_time(tmp_path: Path) -> None:
    booted = {"session_id": BOOTED, "mode": "NORMAL", "phase": "7", "branch": "main", "workspace": "/w", "reasons": []}
    drift = {
        "kind": "mode_drift", "severity": "warn", "session_id": BOOTED, "boot_mode": "NORMAL",
        "current_mode": "DEGRADED", "reasons": [{"text": "a check failed"}],
    }  # fmt: skip
    granted = {"action": "feature_work", "subject": "run:1", "holder": "x", "uses": 1, "expires_at": "later"}
    refused = {"session_id": "oa-session-2", "mode": "BLOCKED", "reasons": [{"text": "no surface is there"}]}
    write_log(tmp_path, [
        note(0, {**granted, "subject": "before"}, type="oa.permit_granted"),
        note(1, booted, type="oa.session_booted"),
        note(2, granted, type="oa.permit_granted"),
        note(3, drift, type="oa.escalated"),
        note(4, {**drift, "session_id": "another"}, type="oa.escalated"),
        note(5, {"session_id": BOOTED, "reason": "closed"}, type="oa.session_ended"),
        note(6, {**granted, "subject": "after"}, type="oa.permit_granted"),
        note(7, refused, type="oa.boot_refused"),
    ])  # fmt: skip
    with reading(tmp_path) as browser:
        page = browser.page("/sessions?kind=oa")
        assert page.links("/sessions/") == [f"/sessions/{BOOTED}"]
        assert "no surface is there" in page.text
        assert "/log/9" in page.links("/log/"), "one that was refused has no more than its event"
        page = browser.page(f"/sessions/{BOOTED}")
        assert "NORMAL → DEGRADED" in page.text
        assert "closed" in page.text
        assert "run:1" in page.text
        assert page.text.count("feature_work") == 1, "permits before and after are not of its time"
        assert browser.page("/sessions/oa-session-2").text.count("refused") >= 1


FIELDS = (
    "operator_id", "mode", "reason", "state", "kind", "text", "contract", "handling", "severity", "outcome", "why",
    "requested_by", "phase", "branch", "workspace", "boot_mode", "current_mode", "ocr_text", "note", "media_type",
    "name", "sha256", "proposal_id",
)  # fmt: skip


def _hostile(number: int, text: str) -> list[Draft]:
    """Events of a session of each kind, with a text in every field."""
    fields: dict[str, Any] = dict.fromkeys(FIELDS, text)
    first, pla_id, oa_id = 20 * number, f"pla-{number:032x}", f"oa-session-{number}"
    pla = {**fields, "session_id": pla_id}
    oa = {**fields, "session_id": oa_id, "reasons": [{"text": text}], text[:50]: {"text": text}}
    told: list[tuple[str, dict[str, Any]]] = [
        ("pla.session_began", pla), ("oa.session_booted", oa), ("oa.boot_refused", oa | {"session_id": text[:100]}),
        ("pla.frame_observed", {**fields, "kept": True, "width": text, "height": [text]}),
        ("pla.proposed", {**pla, "frame": 11 * number + 5, "action": {"text": text, "action_type": text, text: [1]}}),
        ("pla.approved", pla), ("pla.violation", pla), ("pla.proposal_closed", pla), ("oa.escalated", oa),
        ("oa.permit_granted", oa), ("oa.session_ended", oa),
    ]  # fmt: skip
    return [note(first + n, data, type=type, correlation=text[:60]) for n, (type, data) in enumerate(told)]


def test_hostile_text_in_every_field_does_nothing(tmp_path: Path) -> None:
    texts = [text[:2000] for text in some(list(CORPUS.values()), 8)]
    fill_log(tmp_path, [draft for number, text in enumerate(texts) for draft in _hostile(number, text)])
    (tmp_path / "sessions").mkdir()
    (tmp_path / "jobs").mkdir()
    for number, text in enumerate(texts):
        entry = {"details": {"position": 11 * number + 2, text[:50]: text}, "event_type": text, "timestamp": text}
        lines = f"{json.dumps(entry)}\n{text}\n"
        log_of(tmp_path, f"pla-{number:032x}").write_text(lines, "utf-8", "replace")
        (tmp_path / "jobs" / f"pla-{number:032x}.json").write_text(json.dumps({"status": text, "message": text}))
    with reading(tmp_path) as browser:
        for address in ("/sessions", "/sessions?kind=oa", "/sessions?before=40"):
            browser.page(address)
        for number in range(len(texts)):
            page = browser.page(f"/sessions/pla-{number:032x}")
            assert pictures(page), "its frame"
            assert browser.get(pictures(page)[0]).status_code == 404
            assert "Told to people" in browser.page(f"/sessions/oa-session-{number}").text
