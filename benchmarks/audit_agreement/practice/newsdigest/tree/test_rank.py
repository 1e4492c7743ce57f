import rank


def item(title):
    return {"title": title, "text": "", "link": "", "feed": ""}


def test_dedupe():
    assert len(rank.dedupe([item("New railway opens"), item("new railway opens"), item("Bees")])) == 2


def test_score():
    assert rank.score(item("railway security")) == 9
