from pathlib import Path

import httpx

from pingboard import history, page
from pingboard.config import Config, Target
from pingboard.history import Sample
from pingboard.probe import round_of

CONFIG = Config(60, 5, Path("h"), Path("p"), (Target("good", "https://good.example"), Target("bad", "https://bad.example")))


def answer(request):
    return httpx.Response(200 if "good" in request.url.host else 503)


async def test_a_round():
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        samples = {one.target: one for one in await round_of(CONFIG, client)}
    assert samples["good"].up
    assert not samples["bad"].up and samples["bad"].note == "answered 503"


def test_summary(tmp_path):
    with history.opened(tmp_path / "h.sqlite") as db:
        history.add(db, [Sample("a", 10, True, 100), Sample("a", 20, False, 5), Sample("a", 30, True, 200), Sample("a", 40, True, 300)])
        found = history.summary(db, "a", 0)
        assert (found.up, found.since, found.uptime, found.millis) == (True, 30, 0.75, 200)
        assert history.summary(db, "b", 0) is None
        assert history.prune(db, 25) == 2


def test_the_page_says_what_is_down():
    text = page.render([history.Summary("<a>", False, 0, 0.5, 10)], 7200)
    assert "1 of 1 services are down" in text and "&lt;a&gt;" in text and "2 h" in text
