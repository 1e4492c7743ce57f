import asyncio

import pytest

from randnotiz import checkers, flow
from randnotiz.archive import ArchiveError
from randnotiz.desk import Checkable, Finding, Hit, Ruling, Sentence

TEXT = "The bridge was built in 1931. It is beautiful."
BRIDGE = Sentence(text="The bridge was built in 1931.", kind="date", keywords=["bridge"])
HIT = Hit(id="a1", title="Bridge", published="1932-05-01", excerpt="The bridge, opened in 1932")


@pytest.fixture
def desk(monkeypatch):
    answers = {Checkable: Checkable(sentences=[BRIDGE]),
               Ruling: Ruling(finding="contradicted", because="opened in 1932", sources=["a1"])}

    async def asked(form, prompt, tries=2):
        return answers[form]

    async def look_up(keywords, limit=6):
        return [HIT]

    monkeypatch.setattr(checkers, "asked", asked)
    monkeypatch.setattr(checkers, "look_up", look_up)
    monkeypatch.setattr(checkers, "settings", lambda: type("S", (), {"most": 25}))
    return answers


def ran():
    return asyncio.run(flow.build().ainvoke({"text": TEXT}))


def test_a_contradiction_is_noted(desk):
    end = ran()
    assert end["notes"][0].ruling.finding is Finding.CONTRADICTED and "opened in 1932" in end["margin"]


def test_an_invented_sentence_is_left_out(desk):
    desk[Checkable] = Checkable(sentences=[BRIDGE.model_copy(update={"text": "The bridge fell in 1940."})])
    assert "Nothing in this article" in ran()["margin"]


def test_a_ruling_without_a_source_is_open(desk):
    desk[Ruling] = Ruling(finding="contradicted", because="I know it", sources=["z9"])
    assert ran()["notes"][0].ruling.finding is Finding.OPEN


def test_a_failing_archive_leaves_the_sentence_open(desk, monkeypatch):
    async def broken(keywords, limit=6):
        raise ArchiveError("timeout")

    monkeypatch.setattr(checkers, "look_up", broken)
    assert "archive: timeout" in ran()["margin"]


def test_no_answer_is_a_failure(desk):
    desk[Checkable] = None
    assert "Not checked" in ran()["margin"]
