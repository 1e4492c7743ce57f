import asyncio

from quizforge import workers
from quizforge.graph import make
from quizforge.items import Draft, Objections, Question

GOOD = Question(text="Capital?", options=["A", "B", "C"], answer=0, quote="A is the capital.")


class Fake:
    def __init__(self, schema):
        self.schema = schema

    async def ainvoke(self, _):
        return Draft(questions=[GOOD]) if self.schema is Draft else Objections()


def test_keeps_supported(monkeypatch):
    monkeypatch.setattr(workers, "bound", Fake)
    end = asyncio.run(make().ainvoke({"notes": "A is the\ncapital.", "wanted": 1, "kept": {}}))
    assert list(end["kept"]) == ["Capital?"]


def test_drops_unsupported(monkeypatch):
    monkeypatch.setattr(workers, "bound", Fake)
    end = asyncio.run(make().ainvoke({"notes": "nothing", "wanted": 1, "kept": {}}))
    assert end["kept"] == {} and end["rounds"] == 4
