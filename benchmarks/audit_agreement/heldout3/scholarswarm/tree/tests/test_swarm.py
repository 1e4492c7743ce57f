from scholarswarm.arxiv import search_papers
from scholarswarm.graph import build_graph
from scholarswarm.schemas import Note


def test_graph_builds():
    assert "researcher" in build_graph().nodes


def test_search_finds_papers():
    assert len(search_papers(["transformer"])) > 0


def test_note():
    assert Note(question="q", claim="c", source="s", relevance=1.0).relevance == 1.0
