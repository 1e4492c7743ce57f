"""Code in pieces, each with its words."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.passages import FILES_MAX, PassageReader
from pmagent.contracts.audit_facts import CodePassage

CODE = """import csv
LIMIT = 12


class Shelf:
    width: int = 7

    def put(self, book):  # by weight
        return self.sorted_by(book)


def idle():
    raise NotImplementedError
"""


def told(files: int = 1) -> dict[str, CodePassage]:
    reader = PassageReader(files)
    reader.take(parsed("shop.py", CODE.encode()))
    _, _, found = reader.told(lambda _, line, __: line != 12, {"conf.toml": "port = 80"}, ["shop.py"])
    return {one.name or one.path: one for one in found}


def test_code_is_cut_into_passages_with_their_words() -> None:
    found = told()
    assert list(found) == ["idle", "put", "Shelf", "shop.py", "conf.toml"]
    assert {"put", "shelf", "book", "sort", "by"} <= set(found["put"].words.split())
    assert "weight" in found["put"].said.split()
    assert {"width", "7"} <= set(found["Shelf"].words.split())
    assert "book" not in found["Shelf"].words.split()
    assert {"csv", "limit", "12"} <= set(found["shop.py"].words.split())
    assert "80" in found["conf.toml"].words.split()
    assert [one.name for one in found.values() if not one.reached] == ["idle"]


def test_of_too_much_code_only_the_words_are_told() -> None:
    reader = PassageReader(FILES_MAX + 1)
    reader.take(parsed("shop.py", CODE.encode()))
    words, idle, found = reader.told(lambda _, line, __: line != 12, {}, ["shop.py"])
    assert found == []
    assert "shelf" in words.split()
    assert "idl" in idle.split()
