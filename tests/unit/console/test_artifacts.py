"""Artifacts as files: under names that are safe anywhere, with their digests, and never damaged without a word."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.types import Message
from structlog.testing import capture_logs

from pmagent.console.pages.context import PageContext
from pmagent.console.pages.downloads import NAME_CHARS_MAX, PIECE_BYTES, headers, safe_name
from pmagent.console.pages.downloads import blob as download_of
from pmagent.contracts.orchestra import Artifact
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.orchestra import RUN, exited
from tests.support.pages import RunHarness, links, page, pages, recorded, text, written

NAMES = [
    "plain.txt", 'quo"te.txt', "semi;colon", "back\\slash", "100%", "blank name", ".hidden", "\u202egpj.exe",
    "漢字" * 20, "e\u0301" * 30, "<script>", "a'b", "CON", "-rf", "~", "#hash?query",
]  # fmt: skip


def kept(content: bytes, path: str) -> Artifact:
    """An artifact of this content."""
    return Artifact(path=path, size_bytes=len(content), checksum=sha256(content).hexdigest())


def lived(workspace: Path, content: bytes, name: str = "out.bin") -> str:
    """A workspace with a run that left ``content``; where that is had."""
    harness = RunHarness()
    harness.tool = lambda event: exited(event, artifacts=[kept(content, f"{event.data.task_id}/{name}")])
    harness.request({"a": []})
    harness.run()
    written(workspace, harness.history, [content])
    return f"/runs/{RUN}/artifacts/{sha256(content).hexdigest()}/{quote(name, safe='')}"


def blob(workspace: Path, content: bytes) -> Path:
    """Where a content lies."""
    name = sha256(content).hexdigest()
    return Layout(workspace).blobs / name[:2] / name


@each("content", [b"", b"x", b"\0\xff" * 40_000, b"0123456789abcdef" * (PIECE_BYTES // 4)]
)  # fmt: skip
def test_a_file_comes_as_it_is(tmp_path: Path, content: bytes) -> None:
    address = lived(tmp_path, content)
    with pages(tmp_path) as client:
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.content == content
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["repr-digest"] == f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-orchestra-trace-id"] == RUN
        assert (address in links(page(client, f"/runs/{RUN}"))) == bool(content), "an empty one is on its task's page"
        head = client.head(address)
        assert (head.content, head.headers["content-length"]) == (b"", str(len(content)))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Pages over a run that left a file of each name."""
    harness = RunHarness()
    harness.tool = lambda event: exited(
        event, artifacts=[kept(name.encode(), f"{event.data.task_id}/{name}") for name in NAMES]
    )
    harness.request({"a": []})
    harness.run()
    with pages(written(tmp_path_factory.mktemp("named"), harness.history, [name.encode() for name in NAMES])) as client:
        yield client


@each("name", NAMES)
def test_whatever_its_name_says_it_is_an_attachment(named: TestClient, name: str) -> None:
    address = f"/runs/{RUN}/artifacts/{sha256(name.encode()).hexdigest()}/{quote(name, safe='')}"
    assert address in links(page(named, f"/runs/{RUN}"))
    answer = named.get(address)
    assert (answer.status_code, answer.content) == (200, name.encode())
    said = answer.headers["content-disposition"]
    plain, _, wide = said.removeprefix('attachment; filename="').partition("\"; filename*=UTF-8''")
    found = re.fullmatch(r"([A-Za-z0-9._ ()+@=,-]+) ([!-~]+)", f"{plain} {wide}")
    assert found is not None, said
    assert not found[1].startswith(".")
    assert unquote(found[2]) == name


@given(st.text(max_size=400))
def test_a_name_is_safe_whatever_it_was(name: str) -> None:
    safe = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_ ()+@=,-][A-Za-z0-9._ ()+@=,-]*", safe)
    assert 0 < len(safe) <= NAME_CHARS_MAX
    assert headers(name, 1, bytes(32))["content-disposition"].isascii()
    assert "\n" not in headers(name, 1, bytes(32))["content-disposition"]


def test_a_small_file_that_is_damaged_is_not_begun(tmp_path: Path) -> None:
    address = lived(tmp_path, b"content")
    blob(tmp_path, b"content").write_bytes(b"c0ntent")
    with pages(tmp_path) as client:
        answer = client.get(address)
        assert answer.status_code == 500
        assert "its content is not what its name says" in text(answer.text)
        assert "content-disposition" not in answer.headers


def test_a_large_file_that_is_damaged_ends_before_its_end_and_is_told(tmp_path: Path) -> None:
    content = bytes(range(256)) * (3 * PIECE_BYTES // 256)
    address = lived(tmp_path, content)
    blob(tmp_path, content).write_bytes(content[:-1] + b"!")
    with capture_logs() as logs, pages(tmp_path) as client:
        answer = client.get(address)
        assert answer.headers["content-length"] == str(len(content))
        assert len(answer.content) == 2 * PIECE_BYTES, "the last piece is not sent"
    assert [(log["event"], log["log_level"]) for log in logs] == [("a download was cut off", "error")]
    assert logs[0]["blob"] == sha256(content).hexdigest()


def test_who_has_gone_is_sent_no_more(tmp_path: Path) -> None:
    content = bytes(range(256)) * (4 * PIECE_BYTES // 256)
    lived(tmp_path, content)
    sent: list[int] = []

    async def take() -> None:
        async def receive() -> Message:
            if len(sent) < 3:  # the head, and two pieces
                await anyio.sleep_forever()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(len(message.get("body", b"")))

        response = await download_of(PageContext(tmp_path), "out.bin", sha256(content).hexdigest())
        await response({"type": "http", "method": "GET"}, receive, send)

    anyio.run(take)
    assert sent == [0, PIECE_BYTES, PIECE_BYTES]


def test_a_file_that_was_removed_is_told_so(tmp_path: Path) -> None:
    address = lived(tmp_path, b"content")
    blob(tmp_path, b"content").unlink()
    with pages(tmp_path) as client:
        answer = client.get(address)
        assert answer.status_code == 404
        assert "there is no blob" in text(answer.text)


def changed(address: str, **parts: Any) -> str:
    """The address with another run, digest or name."""
    _, _, run, _, digest, name = address.split("/")
    return f"/runs/{parts.get('run', run)}/artifacts/{parts.get('digest', digest)}/{parts.get('name', name)}"


def test_only_what_the_run_s_events_name_is_had(tmp_path: Path) -> None:
    address = lived(tmp_path, b"content")
    secret = b"of somebody else"
    written_blob = blob(tmp_path, secret)
    written_blob.parent.mkdir(exist_ok=True)
    written_blob.write_bytes(secret)
    digest = sha256(secret).hexdigest()
    with pages(tmp_path) as client:
        for other in (
            changed(address, digest=digest), changed(address, name="other.bin"), changed(address, name="OUT.BIN"),
            changed(address, digest=address.split("/")[4].upper()), changed(address, digest="..%2f..%2fHEAD"),
            changed(address, run="5b0c7a52-3f7e-4c1d-9a55-000000000009"), changed(address, name="..%2fout.bin"),
        ):  # fmt: skip
            answer = client.get(other)
            assert answer.status_code == 404, other
            assert secret not in answer.content


def test_the_beginning_of_a_run_s_id_leads_to_the_file(tmp_path: Path) -> None:
    address = lived(tmp_path, b"content")
    with pages(tmp_path) as client:
        answer = client.get(changed(address, run=RUN[:8]))
        assert (answer.status_code, answer.headers["location"]) == (303, address)


def test_every_artifact_of_a_recorded_life_is_had(tmp_path: Path) -> None:
    seen = set()
    with pages(recorded(tmp_path, "runs")) as client:
        for run in {link for link in links(page(client, "/runs")) if re.fullmatch(r"/runs/[0-9a-f-]{36}", link)}:
            for link in {link for link in links(page(client, run)) if "/artifacts/" in link}:
                answer = client.get(link)
                assert sha256(answer.content).hexdigest() == link.split("/")[4]
                seen.add(link)
    assert len(seen) > 5


