"""Hostile text in Markdown stays text, in every place where a report has some."""

from __future__ import annotations

import html
import re

import pytest

from pmagent.projections.core.markdown import code, cut, fenced, inline, label, table, visible
from tests.support.cases import each
from tests.support.hostile import CORPUS, assert_harmless
from tests.support.run_folders import every, parsed

MARKDOWN = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;b&gt;<!-- -->",
    "links": "[x](javascript:alert(1)) ![y](http://evil.example/z) <http://evil.example> [a]: http://b http://c.example",
    "emphasis": "*a* _b_ **c** __d__ ~~e~~ `f` ``g`h`` \\ \\\\ \\| \\`",
    "blocks": "# head\n> quote\n- list\n1. one\n    code\n---\n===\n```\nfence\n~~~\n\n| a | b |\n| - | - |\n",
    "cells": "a | b \\| c || d\\",
    "ticks": "`" * 7 + "x" + "`" * 3,
    "only ticks": "````",
    "blank": "  ",
    "nothing": "",
    "breaks": "one  \ntwo\\\nthree<br>four",
    "entities": "&amp; &#35; &copy; &nbsp;",
    "blanks": "a\u00a0b\u2003c\u3000d",
    "numbered": "1. one",
    "numbered)": "123456789) one",
    "underline": "===",
    "setext": "---",
    "item": "- one",
    "plus": "+ one",
    "quote": "> one",
    "definition": "[a]: http://evil.example",
    "www": "www.evil.example WWW.evil.example mailto:a@evil.example :smile: $x$ @someone",
    "mermaid": '"] --> t9["x"]; click t0 "javascript:alert(1)" %%{init: {}}%% #quot; end',
}
TEXTS = {**CORPUS, **MARKDOWN}
every_text = each("text", TEXTS.values())


def read(tokens: list[object]) -> str:
    return "".join(token.content for token in tokens)  # type: ignore[attr-defined]


def collapsed(text: str) -> str:
    return re.sub(" +", " ", text).strip()


@every_text
def test_in_a_paragraph_it_is_read_as_it_is(text: str) -> None:
    said = visible(cut(text, 500)).strip()
    for before in ("before ", "") if said else ("before ",):
        tokens = parsed(f"{before}{inline(text)}")
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
        children = tokens[1].children or []
        assert {token.type for token in children} <= {"text", "text_special"}
        assert collapsed(read([*children])) == collapsed(f"{before}{said}")


@every_text
def test_in_a_heading_and_under_a_line_it_is_read_as_it_is(text: str) -> None:
    said = visible(cut(text, 500)).strip()
    tokens = parsed(f"# {inline(text)}\n")
    assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]
    assert collapsed(read([*(tokens[1].children or [])])) == collapsed(said)
    under = parsed(f"line\n{inline(text)}")
    assert [token.type for token in under] == ["paragraph_open", "inline", "paragraph_close"]


@every_text
def test_no_reader_makes_a_link_of_it_by_itself(text: str) -> None:
    """GitHub takes ``http:``, ``www.`` and ``:name:`` for more than text; not where the mark is escaped."""
    shown = inline(text)
    assert not re.search(r"(?<!\\):(?=//|[a-z+_-]|\d+:)|www\.", shown, re.IGNORECASE)


@every_text
@pytest.mark.parametrize("make", [inline, code])
def test_a_cell_of_a_table_cannot_be_left(text: str, make: type) -> None:
    tokens = parsed("\n".join(table(("A", "B"), [(make(text), "b"), ("c", make(text))])))
    rows = [token for token in tokens if token.type in ("tr_open", "th_open", "td_open")]
    assert [token.type for token in rows] == [
        "tr_open", "th_open", "th_open", "tr_open", "td_open", "td_open", "tr_open", "td_open", "td_open",
    ]  # fmt: skip
    harm = ("html", "link", "image", "em", "s_", "strong")
    assert [token.type for token in every(tokens) if token.type.startswith(harm)] == []
    texts = [token for token in tokens if token.type == "inline"]
    assert read([*(texts[3].children or [])]) == "b"


@every_text
def test_as_code_it_is_one_piece_of_code(text: str) -> None:
    children = parsed(f"a {code(text)} b")[1].children or []
    assert [token.type for token in children] == (["text", "code_inline", "text"] if text else ["text"])
    if text.strip():
        assert collapsed(children[1].content) == collapsed(visible(cut(text, 500)).replace("|", "│"))


@every_text
def test_a_block_of_code_is_not_closed_by_it(text: str) -> None:
    lines = text.split("\n")
    tokens = parsed("\n".join([*fenced(lines), "", "behind"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == "".join(f"{visible(line)}\n" for line in lines)


@every_text
def test_nothing_is_hidden_or_obeyed_by_a_terminal(text: str) -> None:
    for shown in (inline(text), code(text), label(text), "\n".join(fenced(f"| {line}" for line in text.split("\n")))):
        assert_harmless(shown.encode())


@every_text
def test_a_label_is_one_text_in_quotes_for_mermaid(text: str) -> None:
    shown = label(text)
    assert re.fullmatch(r'"(?:[0-9A-Za-z ._,-]|[^\x00-\x7f]|#[0-9]+;)*"', shown)
    back = re.sub(r"#([0-9]+);", lambda found: html.unescape(f"&#{found[1]};"), shown[1:-1])
    assert back == visible(cut(text, 60))


def test_what_is_cut_says_so() -> None:
    assert cut("x" * 10, 10) == "x" * 10
    assert cut("x" * 11, 10) == "x" * 9 + "…"
