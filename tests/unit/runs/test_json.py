"""JSON of a run: the same values as ever, and nothing in it that is not seen."""

from __future__ import annotations

import json

from pmagent.projections.runs.json import document, line
from tests.support.cases import each
from tests.support.hostile import CORPUS, assert_harmless


@each("text", CORPUS.values())
def test_hostile_text_is_harmless_and_reads_back_as_it_was(text: str) -> None:
    value = {"text": text, "list": [text, {text[:50]: 1}], "none": None}
    for raw in (line(value), document(value)):
        assert json.loads(raw) == value
    assert line(value).count(b"\n") == 1
    assert len(line(value).decode().splitlines()) == 1
    plain = {"text": text.replace("\u0301", "")}  # marks that climb are seen
    assert_harmless(line(plain))
    assert_harmless(document(plain))


def test_what_is_not_ascii_stays_readable() -> None:
    assert line({"a": "größe 漢字 🙂"}) == '{"a":"größe 漢字 🙂"}\n'.encode()
