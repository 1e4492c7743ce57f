"""A file that a task left, shown: pictures, JSON, Markdown, text; nothing is obeyed, and all fit into a zip."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.console.pages.reading.artifacts import WHOLE_BYTES_MAX, markdown, zip_names
from tests.support.cases import each
from tests.support.console_pages import Page, assert_harmless
from tests.support.furnished import MARKUP, picture
from tests.support.hostile import CORPUS
from tests.support.orchestra import RUN, exited
from tests.support.pages import RunHarness, page, pages, text, written
from tests.unit.console.test_artifacts import blob, kept, lived

NOTES = b"""# Notes

- one `code`
- [a](https://evil.example) ![b](x.png) <b>bold</b>

| a | b |
|---|---|
| 1 | 2 |
"""


def view(address: str) -> str:
    """Where the file at that address is shown."""
    return address.replace("/artifacts/", "/view/")


def test_markdown_is_rendered_and_what_would_lead_elsewhere_stays_as_it_is_written(tmp_path: Path) -> None:
    address = view(lived(tmp_path, NOTES, "notes.md"))
    with pages(tmp_path) as client:
        shown = page(client, address)
        assert "<h3>Notes</h3>" in shown, "below the page's own heading"
        assert "<table>" in shown
        assert "[a](https://evil.example)" in shown
        assert "&lt;b&gt;bold&lt;/b&gt;" in shown
        assert "# Notes" in page(client, f"{address}?plain=yes")


@each("name", list(MARKUP | CORPUS))
def test_hostile_markdown_does_nothing(name: str) -> None:
    for source in ((MARKUP | CORPUS)[name], f"# {(MARKUP | CORPUS)[name]}", f"```{(MARKUP | CORPUS)[name]}\nx\n```"):
        rendered = Page(f"<div>{markdown(source)}</div>")
        assert_harmless(rendered)
        assert not [one for one in rendered.elements if one[0] in ("a", "img", "svg", "script", "iframe")]
        assert all(not attributes for _, attributes in rendered.elements), "a class or a style of its own, either"


@given(st.text(max_size=300))
def test_whatever_stands_in_markdown_makes_no_link_and_no_attribute(source: str) -> None:
    for name, attributes in Page(f"<div>{markdown(source)}</div>").elements:
        assert name not in ("a", "img", "script", "style", "iframe")
        assert not attributes


def test_json_has_a_line_a_value_and_what_is_none_is_text(tmp_path: Path) -> None:
    with pages(tmp_path) as client:
        address = view(lived(tmp_path, b'{"b":[1,2],"a":null}', "report.json"))
        assert '"b": [\n    1,' in page(client, address).replace("&#34;", '"')
    for number, twice in enumerate((b'{"a":1,"a":2}', b"{", b"[" * 5000)):
        folder = tmp_path / str(number)
        folder.mkdir()
        address = view(lived(folder, twice, "report.json"))
        with pages(folder) as client:
            assert twice.decode()[:20] in text(page(client, address)), "nothing of it is lost"


def test_a_picture_is_shown_as_what_its_bytes_are_and_nothing_else_is(tmp_path: Path) -> None:
    picture(tmp_path / "screen.png")
    content = (tmp_path / "screen.png").read_bytes()
    address = lived(tmp_path, content, "screen.txt")
    with pages(tmp_path) as client:
        assert f'src="{address.replace("/artifacts/", "/picture/")}"' in page(client, view(address))
        answer = client.get(address.replace("/artifacts/", "/picture/"))
        assert (answer.content, answer.headers["content-type"]) == (content, "image/png")
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    other = tmp_path / "other"
    other.mkdir()
    address = lived(other, b"<svg xmlns='x'><script>alert(1)</script></svg>", "screen.png")
    with pages(other) as client:
        assert client.get(address.replace("/artifacts/", "/picture/")).status_code == 404
        assert "alert(1)" in text(page(client, view(address)))


def test_a_large_file_is_shown_from_both_ends_and_one_that_is_gone_says_so(tmp_path: Path) -> None:
    content = b"first\n" + b"x" * WHOLE_BYTES_MAX + b"\nlast"
    address = view(lived(tmp_path, content, "long.md"))
    with pages(tmp_path) as client:
        shown = text(page(client, address))
        assert "first" in shown
        assert shown.count("left out") == 1
        blob(tmp_path, content).unlink()
        assert "It cannot be shown" in text(page(client, address))


def test_no_file_is_shown_that_no_event_of_the_run_names(tmp_path: Path) -> None:
    address = lived(tmp_path, b"ours", "ours.md")
    stray = sha256(b"stray").hexdigest()
    with pages(tmp_path) as client:
        for place in ("view", "picture"):
            assert client.get(f"/runs/{RUN}/{place}/{stray}/ours.md").status_code == 404
            assert client.get(address.replace("artifacts", place).replace("ours.md", "other.md")).status_code == 404


def test_all_that_a_run_left_comes_as_one_zip(tmp_path: Path) -> None:
    names = ["plain.txt", "a/b.txt", "back\\slash", "c:d", "\u202egpj.exe"]
    contents = [f"content of {name}".encode() for name in names]
    harness = RunHarness()
    harness.tool = lambda event: exited(event, artifacts=[
        kept(content, f"{event.data.task_id}/{name}") for name, content in zip(names, contents, strict=True)
    ])  # fmt: skip
    harness.request({"a": []})
    harness.run()
    written(tmp_path, harness.history, contents)
    blob(tmp_path, contents[-1]).unlink()
    with pages(tmp_path) as client:
        answer = client.get(f"/runs/{RUN}/artifacts.zip")
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
        with zipfile.ZipFile(BytesIO(answer.content)) as packed:
            assert packed.testzip() is None
            held = {name: packed.read(name) for name in packed.namelist()}
    assert held["a/plain.txt"] == contents[0]
    assert set(held.values()) >= set(contents[:-1])
    assert b"gpj.exe" in held["MISSING.txt"]
    assert not any(".." in name.split("/") or name.startswith("/") or "\\" in name for name in held)


def test_a_damaged_file_ends_the_zip_before_its_end(tmp_path: Path) -> None:
    content = b"0123456789" * 100
    lived(tmp_path, content)
    place = blob(tmp_path, content)
    place.chmod(0o600)
    place.write_bytes(content[:-1] + b"!")
    with pages(tmp_path) as client:
        try:
            received = client.get(f"/runs/{RUN}/artifacts.zip").content
        except Exception:  # noqa: BLE001 - cut off: what a browser sees as a download that failed
            received = b""
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(BytesIO(received))


@given(st.lists(st.text(max_size=12), max_size=8))
def test_names_in_a_zip_are_safe_and_differ(names: list[str]) -> None:
    made = [name for name, _ in zip_names([(name, "0") for name in names])]
    assert len(made) == len(names)
    assert all(part not in ("", ".", "..") for name in made for part in name.split("/"))
    assert not any("\\" in name or ":" in name for name in made)
    assert len(set(made)) == len(made)
