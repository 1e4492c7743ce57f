"""Claimed paths are verified by files that exist, and by nothing less."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.cross_reference import cross_reference
from tests.support.cases import each

FILES = [
    "Dockerfile", "README.md", "src/graph.py", "src/nodes/__init__.py", "src/nodes/judges.py", "src/tools/__init__.py",
    "tests/test_graph.py",
]


@each("claimed", [
    "src/nodes/judges.py", "nodes/judges.py", "judges.py", "./src/graph.py", "src\\graph.py", "Dockerfile", "tests/",
    "tests", "src/nodes/", "nodes/", "src/", "nodes/__init__.py", "src/./graph.py",
])
def test_a_path_that_exists_is_verified(claimed: str) -> None:
    assert cross_reference([claimed], {"files": FILES}) == {"verified": [claimed], "hallucinated": [], "ambiguous": []}


@each(
    "claimed",
    [
        "udges.py",  # a part of a path is not a path
        "ode",
        "src/nodes/judge",
        "src/nodes/judges",
        "and/or",
        "graph.py/",  # a file is no folder
        "Src/graph.py",
        "dockerfile",
        "src/judges.py",
        "project/src/graph.py",
        "/src/graph.py",
        "C:/src/graph.py",
        "../src/graph.py",
        "src/nodes/../graph.py",
        "src/graph.pyc",
        "test_graph",
        "",
        "/",
        ".",
    ],
)
def test_anything_else_is_hallucinated(claimed: str) -> None:
    assert cross_reference([claimed], {"files": FILES}) == {"verified": [], "hallucinated": [claimed], "ambiguous": []}


def test_the_end_of_several_paths_verifies_none_and_is_named_ambiguous() -> None:
    found = cross_reference(["__init__.py", "src/nodes/__init__.py"], {"files": FILES})
    assert found == {
        "verified": ["src/nodes/__init__.py"], "hallucinated": ["__init__.py"], "ambiguous": ["__init__.py"],
    }


def test_an_exact_path_is_meant_even_where_it_ends_others() -> None:
    assert cross_reference(["state.py"], {"files": ["state.py", "src/state.py"]})["verified"] == ["state.py"]


def test_without_files_nothing_is_verified_and_each_claim_stands_once() -> None:
    assert cross_reference(["a.py", "b.py", "a.py"], {"files": []})["hallucinated"] == ["a.py", "b.py"]


NAMES = st.sampled_from(["a", "b", "c.py", "d.py"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(st.lists(PATHS, max_size=12), st.lists(st.one_of(PATHS, PATHS.map(lambda path: path + "/")), max_size=12))
def test_a_claim_is_verified_just_where_the_definition_says(files: list[str], claimed: list[str]) -> None:
    found = cross_reference(claimed, {"files": files})
    assert sorted(found["verified"] + found["hallucinated"]) == sorted(set(claimed))
    assert set(found["ambiguous"]) <= set(found["hallucinated"])
    folders = {"/".join(path.split("/")[:size]) for path in files for size in range(1, path.count("/") + 1)}
    for claim in set(claimed):
        known = folders if claim.endswith("/") else folders | set(files)
        path = claim.rstrip("/")
        ends = {each for each in known if each == path or each.endswith("/" + path)}
        assert (claim in found["verified"]) == (path in ends or len(ends) == 1)
        assert (claim in found["ambiguous"]) == (path not in ends and len(ends) > 1)
