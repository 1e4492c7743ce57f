"""The page of one event: envelope, data, causes and consequences, the stored line and what proves it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.reading import event_reading
from pmagent.console.pages.views.event import SHOWN_CHARS
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Draft
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.console_pages import Reader, reading
from tests.support.logged import fill_log, flip, note, segments, write_log

CHAIN = 40
"""Events of which each caused the next, from position 2 on."""
FAN = 30
"""Events that the last of those caused."""
LARGE = {"text": "A" * 60_000, "end": "the very end"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with a chain of causes, a fan of consequences, large data, and a payload in a blob."""
    made = tmp_path_factory.mktemp("events")
    chain = [note(n, causation=n + 1 if n else 0, decision=n > 0) for n in range(CHAIN)]
    fan = [note(CHAIN + n, causation=CHAIN + 1) for n in range(FAN)]
    write_log(made, [*chain, *fan, note(90, LARGE), _in_blob(made, b'{"deep":"in the blob"}')])
    return made


def _in_blob(workspace: Path, content: bytes) -> Draft:
    digest = BlobStore(RealDisk(), str(Layout(workspace).blobs)).put(content)
    reference: dict[str, Any] = {"sha256": digest, "size": len(content), "media_type": "application/json"}
    return note(91, {"blob": reference})


@pytest.fixture(scope="module")
def browser(workspace: Path) -> Iterator[Reader]:
    """Somebody who looks at it."""
    with reading(workspace) as made:
        yield made


END = 1 + CHAIN + FAN + 2


def line(workspace: Path, position: int) -> bytes:
    """The stored line, newline included."""
    return b"".join(path.read_bytes() for path in segments(workspace)).split(b"\n")[position - 1] + b"\n"


def test_the_raw_line_is_handed_out_byte_for_byte(workspace: Path, browser: Reader) -> None:
    for position in (1, 2, END):
        answer = browser.get(f"/log/{position}/raw")
        assert answer.content == line(workspace, position)
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="event-{position}.jsonl"')
        assert answer.headers["content-type"] == "application/octet-stream"
    assert browser.client.head("/log/2/raw").status_code == 200


def test_the_sum_is_computed_anew_and_equals_the_stored_one(workspace: Path, browser: Reader) -> None:
    before = line(workspace, 4).rstrip(b"\n")[-66:-2]
    stored = line(workspace, 5).rstrip(b"\n")
    body = stored[: -len(b',"sum":"') - 66]
    page = browser.page("/log/5")
    for digest in (before.decode(), sha256(bytes.fromhex(before.decode()) + body).hexdigest()):
        assert digest in page.text
    assert "intact: its sum fits" in page.text
    assert f"byte{len(b''.join(line(workspace, n) for n in range(1, 5)))} " in page.text
    assert f"length{len(stored) + 1} bytes" in page.text


def test_causes_stand_above_and_consequences_below(browser: Reader) -> None:
    tree = browser.page("/log/4").source.partition('id="tree"')[2]
    paths = [tree.index(mark) for mark in ('href="/log/2"', 'href="/log/3"', 'aria-current="true"', 'href="/log/5"')]
    assert paths == sorted(paths)
    assert tree.count("<ul") == 1 + 2 + event_reading.DEPTH, "each deeper than its cause"


def test_a_long_chain_of_causes_is_cut_in_its_middle_and_says_so(browser: Reader) -> None:
    page = browser.page(f"/log/{CHAIN + 1}")
    left_out = CHAIN - 1 - event_reading.CAUSES_SHOWN
    assert f"… {left_out} events between" in page.text
    for position in (2, 3, 4, CHAIN):
        assert f"/log/{position}" in page.links("/log/"), position
    assert "/log/10" not in page.links("/log/")
    assert len([link for link in page.links("/log/") if link.endswith(tuple("0123456789"))]) >= FAN


def test_what_is_nested_too_deeply_is_on_its_own_page(browser: Reader) -> None:
    page = browser.page("/log/2")
    deepest = 2 + event_reading.DEPTH
    assert f"/log/{deepest}" in page.links("/log/")
    assert f"/log/{deepest + 1}" not in page.links("/log/")


def test_more_consequences_are_shown_when_asked_for(browser: Reader) -> None:
    page = browser.page(f"/log/{CHAIN + 1}?limit=4")
    assert f"and {FAN - 4} more" in page.text
    (more,) = page.links(f"/log/{CHAIN + 1}?limit=")
    assert more.endswith("=20")
    for bad in ("0", "x", "99999", "9" * 5000):
        browser.page(f"/log/2?limit={bad}", 400)


def test_without_time_the_page_says_how_far_was_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_log(tmp_path, [note(n, {"text": "x" * 900}) for n in range(900)])
    monkeypatch.setattr(event_reading, "LOOK_SECONDS", 0.0)
    with reading(tmp_path) as browser:
        assert "There was no time to look for consequences beyond position" in browser.page("/log/2").text


def test_large_data_is_cut_and_can_be_had(browser: Reader) -> None:
    page = browser.page(f"/log/{END - 1}")
    assert "the very end" not in page.text
    assert page.text.count("more characters are not shown") == 2
    assert b"the very end" in browser.get(f"/log/{END - 1}/raw").content
    assert len(page.source) < 4 * SHOWN_CHARS


def test_a_payload_in_a_blob_is_downloaded_with_its_digest(workspace: Path, browser: Reader) -> None:
    page = browser.page(f"/log/{END}")
    assert "22 B of application/json" in page.text
    assert '"deep": "in the blob"' in page.text
    (address,) = page.links(f"/log/{END}/blob")
    answer = browser.get(address)
    assert answer.content == b'{"deep":"in the blob"}'
    assert answer.headers["repr-digest"] == f"sha-256=:{b64encode(sha256(answer.content).digest()).decode()}:"
    assert browser.get("/log/2/blob").status_code == 404
    digest = sha256(answer.content).hexdigest()
    (Layout(workspace).blobs / digest[:2] / digest).write_bytes(b"another")
    assert browser.get(address).status_code == 500
    page = browser.page(f"/log/{END}")
    assert "It is not shown" in page.text
    assert "its content is not what its name says" in page.text


def test_an_event_leads_to_the_pages_of_what_it_tells_of(tmp_path: Path) -> None:
    named = {"proposal_id": "prop-" + "a" * 32, "session_id": "pla-" + "b" * 32}
    run = {"run_id": "11111111-2222-4333-8444-555555555555"}
    hostile = {"proposal_id": "prop-../../x", "session_id": ["pla-" + "b" * 32]}
    write_log(tmp_path, [note(1, named), note(2, hostile), note(3, run)])
    with reading(tmp_path) as browser:
        page = browser.page("/log/2")
        assert page.links(f"/approvals/{named['proposal_id']}")
        assert page.links(f"/sessions/{named['session_id']}")
        page = browser.page("/log/3")
        assert not page.links("/approvals/")
        assert not page.links("/sessions/")
        assert len(browser.page("/log/4").links(f"/runs/{run['run_id']}")) == 1


@each("position", ["0", "-1", "01", "x", str(END + 1), "9" * 30, "9" * 5000, "%1b", "1%00"])
def test_what_is_no_position_is_not_found(browser: Reader, position: str) -> None:
    for address in (f"/log/{position}", f"/log/{position}/raw", f"/log/{position}/blob"):
        assert browser.get(address).status_code == 404, address


def test_a_corrupt_line_is_shown_as_it_is_and_told_of(tmp_path: Path) -> None:
    write_log(tmp_path, [note(n, causation=n + 1) for n in range(9)])
    (segment,) = segments(tmp_path)
    start = sum(len(each) + 1 for each in segment.read_bytes().split(b"\n")[:4])
    flip(segment, start + 120)
    with reading(tmp_path) as browser:
        page = browser.page("/log/5")
        assert "corrupt: its sum does not fit its bytes and the line before" in page.text
        assert page.links("/integrity")
        assert browser.get("/log/5/raw").content == segment.read_bytes().split(b"\n")[4] + b"\n"
        page = browser.page("/log/6")
        assert "intact: its sum fits" in page.text, "its own line is as it was written"
        assert "position 5" in page.text, "but its cause cannot be read"
        assert "toy.noted" in page.text
        assert "Causes and consequences" not in page.text
        flip(segment, start + 2)
        assert browser.get("/log/5").status_code == 500
        assert "position 5" in browser.page("/log/5", 500).text
