from src.core.rubric import RUBRIC
from src.core.state import JudicialOpinion
from src.graph import build_courtroom


def test_graph_compiles():
    assert build_courtroom() is not None


def test_schema():
    assert JudicialOpinion(judge="Defense", criterion_id="x", score=5, argument="y").score == 5


def test_rubric_has_dimensions():
    assert len(RUBRIC) > 0
