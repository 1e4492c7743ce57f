from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tripsmith import planner
from tripsmith.models import Wish
from tripsmith.providers import FromFiles


def plan(monkeypatch, tmp_path, **wish):
    monkeypatch.setattr(planner, "understand", lambda trip: {"wish": Wish(**wish)})
    provider = FromFiles(journal=tmp_path / "j.txt")
    return planner.make_planner(provider, InMemorySaver()), {"configurable": {"thread_id": "t"}}


def test_books_after_yes(monkeypatch, tmp_path):
    app, config = plan(monkeypatch, tmp_path, city="Ljubljana", nights=2, budget=400)
    assert app.invoke({"request": "x"}, config)["__interrupt__"]
    end = app.invoke(Command(resume="yes"), config)
    assert end["message"] == "ok r2; ok h1"
    assert (tmp_path / "j.txt").read_text() == "r2\nh1\n"


def test_no_means_no(monkeypatch, tmp_path):
    app, config = plan(monkeypatch, tmp_path, city="Ljubljana", nights=2, budget=400)
    app.invoke({"request": "x"}, config)
    assert app.invoke(Command(resume="no"), config)["message"] == "not booked"


def test_too_dear(monkeypatch, tmp_path):
    app, config = plan(monkeypatch, tmp_path, city="Ljubljana", nights=9, budget=100)
    assert "over the budget" in app.invoke({"request": "x"}, config)["message"]


def test_nowhere(monkeypatch, tmp_path):
    app, config = plan(monkeypatch, tmp_path, city="Atlantis", nights=1, budget=100)
    assert app.invoke({"request": "x"}, config)["message"] == "no ride and no room to Atlantis"
