from themis.core.models import Opinion, Persona
from themis.forensics.ast_probe import inspect_source
from themis.graph import build_tribunal


def test_tribunal_runs_end_to_end():
    result = build_tribunal().invoke({"repository": "https://github.com/acme/app", "report": "app.pdf"})
    assert len(result["verdicts"]) == 6
    assert all(1 <= verdict.score <= 5 for verdict in result["verdicts"])
    assert len(result["opinions"]) == 18


def test_opinion_is_typed():
    assert Opinion(persona=Persona.DEFENDER, dimension="state", score=4, argument="x").score == 4


def test_visitor_sees_edges():
    assert inspect_source("g.add_edge('a', 'b')").edges == [("'a'", "'b'")]
