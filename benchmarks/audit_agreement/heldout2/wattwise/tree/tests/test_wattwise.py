from wattwise.agents.critic import mape
from wattwise.graph import build_full_graph, build_graph


def test_graphs_compile():
    assert build_graph()
    assert build_full_graph()


def test_mape():
    assert mape([100, 100], [90, 110]) >= 0
