from paperstack.index import Index, Page


def make():
    index = Index()
    index.add(Page("a.pdf", 1, "participants were recruited online, sample size forty"))
    index.add(Page("a.pdf", 2, "results and discussion of results"))
    index.add(Page("b.pdf", 1, "a history of bees"))
    return index


def test_best_page_first():
    assert make().search("sample size")[0][1].number == 1


def test_no_hit():
    assert make().search("quantum") == []


def test_k():
    assert len(make().search("results sample bees", k=2)) == 2
