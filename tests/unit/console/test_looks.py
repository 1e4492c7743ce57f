"""The common parts of pages: the frame, the theme, the help, and the parts that they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.cli.topics import TOPICS
from pmagent.console.pages.rendering import STATIC, TEMPLATES, environment
from pmagent.edges import SECTIONS
from pmagent.events.unseen import UNSEEN
from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.hostile import CORPUS

SHEETS = ("console.css", "drawings.css", "print.css")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live host."""
    with live_host(fresh_example(tmp_path_factory.mktemp("looks") / "bench-of-ada")) as live:
        yield live


@pytest.fixture(scope="module")
def ada(host: LiveHost) -> Iterator[Console]:
    """Somebody who may approve."""
    with console(host.workspace, "ada") as browser:
        yield browser


@pytest.fixture(scope="module")
def vera(host: LiveHost) -> Iterator[Console]:
    """Somebody who may only look."""
    with console(host.workspace, "vera", "view") as browser:
        yield browser


def parts(source: str, **context: object) -> str:
    """The page of a template that uses the parts."""
    made = environment(Path("/workspace")).from_string(f'{{%- import "parts.html" as parts with context -%}}{source}')
    return made.render(visitor=None, **context)


@each("theme", ["light", "dark"])
def test_a_theme_that_was_chosen_is_the_theme_of_every_page(vera: Console, theme: str) -> None:
    answer = vera.post("/theme", theme=theme, back="/log?type=oa.*")
    assert (answer.status_code, answer.headers["location"]) == (303, "/log?type=oa.*")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"theme={theme};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    for address in ("/help", "/log"):
        assert f'<html lang="en" data-theme="{theme}">' in vera.page(address)
    vera.post("/theme", theme="auto", back="/")
    assert '<html lang="en">' in vera.page("/help")


@each(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/\r\nx: y"],
)  # fmt: skip
def test_nobody_is_sent_elsewhere_by_choosing_a_theme(vera: Console, back: str) -> None:
    assert vera.post("/theme", theme="auto", back=back).headers["location"] == "/"


def test_a_theme_that_there_is_not_is_refused(vera: Console) -> None:
    answer = vera.post("/theme", theme="\"><script>", back="/")
    assert answer.status_code == 400
    assert "<script>" not in answer.text.replace('<script src="/static/console.js" defer></script>', "")


def test_a_cookie_of_no_theme_is_nothing_to_the_page(vera: Console) -> None:
    vera.client.cookies.set("theme", "dark onload=alert(1)", domain="127.0.0.1")
    assert '<html lang="en">' in vera.page("/help")
    vera.client.cookies.delete("theme", domain="127.0.0.1")


def test_the_help_names_every_section_that_the_frame_leads_to(ada: Console) -> None:
    page = ada.page("/help")
    frame = re.findall(r'<li><a href="([^"]+)"', page)
    assert frame == [section.address for section in SECTIONS]
    for section in SECTIONS:
        assert f"<kbd>{section.key}</kbd> {section.text}" in page, "the dialog tells the same keys as the help"
    assert TOPICS["times"].text().splitlines()[-1] in page


def test_the_script_finds_each_sections_key_at_its_link(ada: Console) -> None:
    assert "nav.sections a[data-key]" in (STATIC / "keys.js").read_text("utf-8")
    known = re.findall(r'<li><a href="([^"]+)" data-key="([a-z])"', ada.page("/log"))
    assert known == [(section.address, section.key) for section in SECTIONS]
    assert len({section.key for section in SECTIONS}) == len(SECTIONS)


def test_whoever_is_signed_in_finds_the_stop_switch_on_every_page(ada: Console, vera: Console) -> None:
    for browser in (ada, vera):
        page = browser.page("/help")
        assert re.findall(r'action="/control/([a-z]+)"', page) == ["pause"]


def test_who_is_not_signed_in_learns_nothing_from_the_frame(host: LiveHost) -> None:
    with console(host.workspace, "gone") as browser:
        browser.client.cookies.clear()
        page = browser.page("/sign-in")
    assert '<nav class="sections"' not in page
    assert 'data-position="0"' in page
    assert host.workspace.name not in page


@each(
    "word, sign, tone",
    [
        ("done", "✓", "good"), ("failed", "✗", "bad"), ("blocked", "◦", ""), ("BLOCKED", "✗", "bad"),
        ("NORMAL", "✓", "good"), ("timed_out", "✗", "bad"), ("outcome unknown", "?", "warn"), ("paused", "‖", "warn"),
        ("never heard of", "·", ""), ("", "·", ""),
    ],
)  # fmt: skip
def test_a_state_has_a_word_a_sign_and_a_tone(word: str, sign: str, tone: str) -> None:
    made = parts("{{ parts.state(word) }}", word=word)
    assert f'<span class="sign" aria-hidden="true">{sign}</span>{word.replace("_", " ")}</span>' in made
    assert made.startswith(f'<span class="state {tone}">')


@each("name", CORPUS)
def test_parts_show_hostile_text_as_text(name: str) -> None:
    text = CORPUS[name][:2000] + "</pre><script>x</script>\"'>"
    made = parts(
        "{{ parts.state(text) }}{{ parts.fact(text, text) }}{{ parts.bytes(text, text) }}{{ parts.output(text, text) }}"
        "{{ parts.diff([('+', text), ('-', text)], text) }}"
        "{{ parts.empty(text, text) }}{{ parts.field('name', text, text, text) }}{{ parts.digest(text) }}"
        "{{ parts.choice_of('name', text, [(text, text)], text) }}{{ parts.command(['pmagent', text]) }}"
        "{{ parts.pager('/x', '/y', text) }}{{ parts.until(text) }}{{ parts.hidden([(text, text)]) }}",
        text=text,
    )
    assert "<script" not in made
    assert made.count("</pre>") == 3
    assert not re.findall(f"[{UNSEEN}]", made.replace("\n", ""))


def test_text_that_begins_with_a_line_break_keeps_it() -> None:
    made = parts("{{ parts.output(text, 'x') }}", text="\nfirst")
    assert made.endswith(">\n\nfirst</pre>"), "a browser takes one away"


def test_nothing_that_a_page_needs_lies_elsewhere_or_in_the_page_itself() -> None:
    for path in TEMPLATES.glob("*.html"):
        source = path.read_text("utf-8")
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=\"", source), path.name
        ours = r'<script src="/static/(?:vendor/)?[a-z.]+\.js" defer>'
        assert re.findall(r"<script[^>]*>", source) == re.findall(ours, source)
        assert not re.search(r"https?://", source), path.name
        assert "| safe" not in source, path.name
        assert "autoescape" not in source, path.name
    for name in SHEETS:
        assert not re.search(r"url\(|@import|https?://", (STATIC / name).read_text("utf-8")), name


def test_every_colour_of_the_sheets_is_a_token_of_both_themes() -> None:
    """So that no page is half light: a colour stands in ``light-dark``, or is white on what is dark in both."""
    for name in ("console.css", "drawings.css"):
        for line in (STATIC / name).read_text("utf-8").splitlines():
            bare = re.sub(r"light-dark\([^)]*\)", "", line)
            assert set(re.findall(r"#[0-9a-f]{3,8}\b", bare)) <= {"#ffffff"}, line


def test_templates_of_another_version_change_no_page_of_a_console_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "error.html"
    installed.write_text("before {{ what }}")
    monkeypatch.setattr("pmagent.console.pages.rendering.TEMPLATES", tmp_path)
    running = environment(tmp_path)
    installed.write_text("after {{ what }} {{ unheard_of }}")
    assert running.get_template("error.html").render(what="this") == "before this"
    assert environment(tmp_path).get_template("error.html").render(what="it", unheard_of="") == "after it "
