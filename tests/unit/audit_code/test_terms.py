"""Where a rubric's terms are found in code: by the tree, never in comments and docstrings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.term_patterns import pattern, squashed
from pmagent.actors.audit.detectors.code.terms import PLACES_MAX, TermReader, matching
from pmagent.contracts.audit_facts import Term
from tests.support.cases import each


def found(term: str, *texts: str, paths: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    one = search(term, *texts, paths=paths)
    return [(place.path, place.line) for place in one.places]


def search(term: str, *texts: str, paths: tuple[str, ...] = ()) -> Term:
    names = paths or tuple(f"{n}.py" for n in range(len(texts)))
    reader = TermReader([term])
    for path, text in zip(names, texts, strict=False):
        source = parsed(path, text.encode())
        assert source.tree is not None, source.reason
        reader.take(source)
    (one,) = reader.terms(names)
    return one


def lines(term: str, text: str) -> list[int]:
    return [line for _, line in found(term, text)]


@each(
    "term, text, where",
    [
        # names, wherever they stand
        ("StateGraph", "from langgraph.graph import StateGraph\nx = StateGraph(S)\n# StateGraph\n", [2]),
        ("StateGraph", "import langgraph.graph as lg\nx = lg.StateGraph(S)\n", [2]),
        ("StateGraph", "class StateGraph: pass\ndef f(StateGraph): pass\nf(StateGraph=1)\n", [1, 2, 3]),
        ("StateGraph", "x = StateGraphs\ny = 'StateGraph is good'\nz = 'StateGraph'\n", [3]),
        ("StateGraph", "'''StateGraph'''\ndef f():\n    'StateGraph'\n", []),
        ("cited_evidence", "x = {'cited_evidence': []}\nx['cited_evidence']\ny.cited_evidence\n", [1, 2, 3]),
        # dotted names, through imports
        ("operator.add", "import operator\nx = operator.add\n", [2]),
        ("operator.add", "import operator as op\nx = op.add\n", [2]),
        ("operator.add", "from operator import add\nx = add\n", [2]),
        ("operator.add", "from operator import add as plus\nx = plus\n", [1]),
        ("operator.add", "x.add(1)\nadd(1)\noperator.added\n", []),
        ("os.system()", "import os\nos.system('x')\nimport platform\nplatform.system()\n", [2]),
        ("tempfile.TemporaryDirectory()", "from tempfile import TemporaryDirectory as T\nwith T(): x\n", [1]),
        # methods, whatever they are called on
        ("builder.add_edge()", "workflow.add_edge('a', 'b')\n", [1]),
        (".with_structured_output()", "a = model.bind(x).with_structured_output(S)\n", [1]),
        (".bind_tools", "(model\n  .bind_tools(tools))\n", [2]),
        # calls with what they are given
        (".bind(Opinion)", "m.bind(Opinion)\nm.bind(X)\nm.bind()\nm.bind(Opinion, strict=True)\n", [1, 4]),
        ('os.system("git clone <url>")', "import os\nos.system(f'git clone {url}')\nos.system('ls')\n", [2]),
        ("StateGraph(AgentState, ...)", "StateGraph(AgentState)\nStateGraph(dict)\nStateGraph()\n", [1]),
        # values that are given by name
        ("shell=True", "run(x, shell=True)\nrun(x, shell=False)\nshell = True\n", [1]),
        ("temperature=0", "M(temperature=0)\nx = {'temperature': 0}\nM(temperature=1)\n", [1, 2]),
        # phrases
        ("git clone", "run(['git', 'clone', url])\nrun('git clone --depth 1')\nrun('git cloned')\n", [1, 2]),
        ("git log --oneline --reverse", "run(['git', '-C', p, 'log', '--reverse', '--oneline'])\n", [1]),
        ("git log --oneline --reverse", "x(['git', 'log'])\nx(['a', 'git', 'log', '--oneline', '--reverse'])\n", [2]),
        ("git log --oneline --reverse", "run('git', 'log', '--oneline', '--reverse', cwd=p)\n", [1]),
        ("Evidence Missing", "evidence_missing = 1\nclass EvidenceMissing: x\ny = 'evidence  missing.'\n", [1, 2, 3]),
        ("Evidence Missing", "x = 'evidence was missing'\n", []),
        ("The Grader", "PROMPT = '''You are the\n   Grader.'''\n", [1]),
    ],
)  # fmt: skip
def test_terms_are_found_where_they_stand(term: str, text: str, where: list[int]) -> None:
    assert lines(term, text) == where


def test_paths_are_compared_at_slashes() -> None:
    files = ["src/graph.py", "old/src/graph.py", "src/tools/a.py", "src/tools/b.txt", "mysrc/graph.py"]
    assert matching("src/graph.py", files) == ["src/graph.py"]
    assert matching("graph.py", files) == ["src/graph.py", "old/src/graph.py", "mysrc/graph.py"]
    assert matching("src/tools/", files) == ["src/tools/a.py", "src/tools/b.txt"]
    assert matching("tools/", files) == ["src/tools/a.py", "src/tools/b.txt"]
    assert matching("rc/graph.py", files) == []
    assert matching("", []) == []


@each(
    "term, kind",
    [
        ("src/state.py", "path"), ("src/tools/", "path"), ("graph.py", "path"), ("pyproject.toml", "path"),
        (".env.example", "path"), ("BaseModel", "name"), ("operator.ior", "name"), ("builder.add_edge()", "name"),
        (".bind_tools()", "name"), ("os.system", "name"), ("f(x)", "call"), ("shell=True", "keyword"),
        ("git clone", "phrase"), ("Fan-In / Fan-Out", "phrase"), ("We isolated the logic in src/tools/a.py", "phrase"),
        ("a == b", "phrase"), ("x = = y", "phrase"), ("f(**x)", "phrase"), ("f(", "phrase"), ("…", "phrase"),
    ],
)  # fmt: skip
def test_what_a_term_is_follows_from_its_form(term: str, kind: str) -> None:
    assert pattern(term).kind == kind


def test_the_same_name_in_other_forms_is_one_word() -> None:
    assert squashed("evidence_missing") == squashed("EvidenceMissing") == squashed("Evidence Missing")


def test_all_places_are_counted_and_what_ships_is_shown_first() -> None:
    text = "\n".join(["f(x)"] * 20)
    one = search("f", text, text, text, paths=("tests/test_a.py", "b.py", "examples/c.py"))
    assert one.count == 60
    assert [place.path for place in one.places] == ["b.py"] * PLACES_MAX


def test_a_line_counts_once() -> None:
    assert search("f", "f(f(f))\n").count == 1


def test_an_import_is_shown_only_where_nothing_else_is() -> None:
    one = search("add", "from operator import add\nadd(1, 2)\n", "from operator import add\n")
    assert [(place.path, place.line) for place in one.places] == [("0.py", 2), ("1.py", 1)]
    assert one.count == 3


def test_every_term_is_answered_once_and_in_order() -> None:
    reader = TermReader(["b", "a", "b", "src/x.py"])
    assert [one.term for one in reader.terms(["src/x.py"])] == ["b", "a", "src/x.py"]


def test_a_secret_in_the_line_is_masked() -> None:
    one = search("connect", 'connect(password="hunter2-hunter2-hunter2")\n')
    assert "hunter2" not in one.places[0].text


@given(st.text(max_size=60))
def test_whatever_is_quoted_is_looked_for(term: str) -> None:
    text = "import os\nclass A(B):\n    x: int = os.path.join('a b', f'{c}')\n    y = ['git', 'clone', *d]\n"
    one = search(term, text)
    assert one.term == term
    assert one.count >= len(one.places)


@given(st.from_regex(r"[a-z_]{1,8}(\.[a-z_]{1,8}){0,2}", fullmatch=True))
def test_a_name_is_found_in_a_use_of_it(name: str) -> None:
    try:
        compile(f"x = {name}", "", "exec")
    except SyntaxError:  # a keyword
        return
    if pattern(name).kind == "name":
        assert lines(name, f"x = {name}\n") == [1]
