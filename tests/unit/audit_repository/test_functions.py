"""Functions for judges to read: those around findings, and those that a graph's nodes are."""

from __future__ import annotations

from pmagent.actors.audit.sources.repository.functions import FUNCTION_BYTES_MAX, functions_of
from pmagent.contracts.audit_facts import CodeGraph, GraphNode
from tests.support.audits import finding

FILES = {
    "app/graph.py": b"from app.nodes import judge\n\ndef build():\n    graph.add_node('judge', judge)\n",
    "app/nodes.py": b"@traced\ndef judge(state):\n    def inner():\n        return 1\n    return inner()\n",
    "app/large.py": b"def large():\n" + b"    call()\n" * FUNCTION_BYTES_MAX,
    "app/broken.py": b"def (:\n",
    "app/secret.py": b"def key():\n    return 'sk-proj-" + b"a1B2" * 12 + b"'\n",
}
GRAPH = CodeGraph(
    path="app/graph.py", line=4, name="graph", builder="StateGraph", state="S", edges=[], parallel_sources=[],
    fan_in_targets=[], compiled=True, nodes=[GraphNode(name="judge", line=4)],
)  # fmt: skip


def texts(*places: tuple[str, int], budget: int = 10_000) -> dict[str, str]:
    """The functions that are kept because of findings at these places, by name."""
    found = [finding("state.typed", path, line) for path, line in places]
    made = functions_of(found, [GRAPH] if not places else [], FILES.get, list(FILES), budget)
    return {one.name: one.text for one in made}


def test_a_graphs_own_function_and_those_of_its_nodes_are_kept_whole() -> None:
    kept = texts()
    assert list(kept) == ["build", "judge"]
    assert kept["judge"] == FILES["app/nodes.py"].decode().rstrip()


def test_the_innermost_function_around_a_finding_is_kept_and_nothing_else() -> None:
    assert list(texts(("app/nodes.py", 4), ("app/graph.py", 1), ("app/broken.py", 1), ("gone.py", 1))) == ["inner"]


def test_beyond_the_budget_only_names_are_kept() -> None:
    assert texts(("app/nodes.py", 2), budget=0) == {"judge": ""}
    assert texts(("app/large.py", 2), budget=FUNCTION_BYTES_MAX * 100) == {"large": ""}


def test_secrets_are_masked() -> None:
    assert "a1B2" not in texts(("app/secret.py", 2))["key"]
