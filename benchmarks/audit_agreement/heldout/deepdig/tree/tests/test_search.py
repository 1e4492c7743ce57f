from deepdig.search import search


def test_rare_words_win(tmp_path):
    (tmp_path / "a.md").write_text("bridge bridge bridge\n\nbolts were corroded under the bridge")
    (tmp_path / "b.md").write_text("the river was high")
    hits = search(str(tmp_path), "corroded bolts")
    assert [h.source for h in hits] == ["a.md"]
    assert "corroded" in hits[0].text
