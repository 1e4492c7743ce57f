import io

import pytest

from slugkit import SlugError, Slugger, slugify
from slugkit.__main__ import main


@pytest.mark.parametrize(("title", "language", "slug"), [
    ("Crème brûlée", "en", "creme-brulee"),
    ("Äpfel & Öl", "de", "aepfel-oel"),
    ("R&D", "en", "r-and-d"),
    ("Łódź", "pl", "lodz"),
    ("  --x--  ", "en", "x"),
])
def test_slugify(title, language, slug):
    assert slugify(title, language=language) == slug


def test_nothing_left():
    with pytest.raises(SlugError):
        slugify("!!!")


def test_unknown_language():
    with pytest.raises(LookupError, match="xx"):
        slugify("a", language="xx")


@pytest.mark.parametrize("limit", range(1, 12))
def test_limit(limit):
    assert len(slugify("one two three", limit=limit)) <= limit


def test_cut_between_words():
    assert slugify("one two three", limit=9) == "one-two"


def test_unique():
    s = Slugger(["a"])
    assert [s.unique("A"), s.unique("a")] == ["a-2", "a-3"]


def test_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello World\n!!\n"))
    assert main([]) == 1
    out = capsys.readouterr()
    assert out.out == "hello-world\n"
    assert "no slug" in out.err
