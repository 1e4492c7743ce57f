from talentlens.fairness import check
from talentlens.graph import build_graph
from talentlens.privacy import redact
from talentlens.schemas import Candidate


def test_graph_compiles():
    assert build_graph() is not None


def test_fairness_passes():
    assert check(["a", "b"]).passed


def test_redaction():
    text = redact(Candidate(address="a@b.example", text="Mrs Doe, a@b.example, born 3 May 1990")).redacted
    assert "1990" not in text and "@" not in text
