"""Where a path leads: what is known, what the caller decides, what nobody can tell."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.names import last_name
from pmagent.actors.audit.detectors.code.places import is_own_file, place_of
from pmagent.actors.audit.detectors.code.scopes import module_of
from tests.support.cases import each
from tests.support.detected import source

HEAD = "import anyio, os, pathlib, tempfile\nfrom pathlib import Path\n"


def place(text: str) -> tuple[str, float, str]:
    """Where the argument of ``HERE(…)`` leads."""
    module = module_of(source(HEAD + text))
    assert module is not None
    for call, site in module.calls():
        if last_name(call.func) == "HERE":
            found = place_of(module, call.args[0], site.scope)
            return found.where, found.sure, found.param
    raise AssertionError(text)


@each("expression, where, sure", [
    ("tempfile.mkdtemp()", "temporary", 1.0),
    ("tempfile.mktemp()", "temporary", 1.0),
    ("tempfile.gettempdir() + '/x'", "temporary", 1.0),
    ("tempfile.TemporaryDirectory().name", "temporary", 1.0),
    ("os.path.join(tempfile.gettempdir(), 'x')", "temporary", 1.0),
    ("os.fspath(Path(tempfile.mkdtemp()))", "temporary", 1.0),
    ("os.path.normpath(tempfile.mkdtemp())", "temporary", 1.0),
    ("Path(tempfile.mkdtemp(), 'x').resolve()", "temporary", 1.0),
    ("(Path(tempfile.mkdtemp()) / 'x').joinpath('y')", "temporary", 1.0),
    ("f'{tempfile.mkdtemp()}/x'", "temporary", 1.0),
    ("(d := tempfile.mkdtemp())", "temporary", 1.0),
    ("tempfile.mkdtemp(dir='.')", "temporary", 0.7),
    ("tempfile.mkdtemp() if x else x", "temporary", 0.7),
    ("x or tempfile.mkdtemp()", "temporary", 0.7),
    ("tempfile.mkdtemp() if x else '.'", "temporary", 0.7),
    ("make_temp_dir(x)", "temporary", 0.6),
    ("settings.scratch_dir", "temporary", 0.6),
    ("'.'", "working", 0.9),
    ("'repos/x'", "working", 0.9),
    ("''", "working", 0.9),
    ("os.getcwd()", "working", 1.0),
    ("Path.cwd() / 'x'", "working", 1.0),
    ("Path(__file__).parent", "working", 0.6),
    ("f'repos/{x}'", "working", 0.9),
    ("f'repo_{x}'", "working", 0.7),
    ("'.' if x else 'b'", "working", 0.9),
    ("'.' if x else x", "working", 0.7),
    ("'/srv/repos'", "fixed", 0.9),
    ("'~/repos'", "fixed", 0.9),
    (r"'C:\\repos'", "fixed", 0.9),
    (r"'\\\\host\\repos'", "fixed", 0.9),
    ("'/tmp/repo'", "fixed", 0.6),
    ("'/var/tmp/repo'", "fixed", 0.6),
    ("x", "unknown", 0.0),
    ("x.y.z", "unknown", 0.0),
    ("x(1)", "unknown", 0.0),
    ("x[0]", "unknown", 0.0),
    ("print", "unknown", 0.0),
    ("temperature", "unknown", 0.0),
    ("str()", "unknown", 0.0),
    ("1", "unknown", 0.0),
])
def test_an_expression_leads_where_its_beginning_leads(expression: str, where: str, sure: float) -> None:
    assert place(f"HERE({expression})")[:2] == (where, sure)


@each("text, expected", [
    ("def f(to): HERE(to)", ("unknown", 0.0, "to")),
    ("def f(to): HERE(str(to) + '/x')", ("unknown", 0.0, "to")),
    ("def f(to='.'): HERE(to)", ("working", 0.6, "to")),
    ("def f(to='/srv'): HERE(to)", ("fixed", 0.6, "to")),
    ("def f(tmp_path): HERE(tmp_path / 'x')", ("temporary", 0.9, "tmp_path")),
    ("def f(to: tempfile.TemporaryDirectory): HERE(to.name)", ("temporary", 0.9, "to")),
    ("def f(temp_dir): HERE(temp_dir)", ("temporary", 0.6, "temp_dir")),
    ("def f(to=None):\n    if to is None: to = tempfile.mkdtemp()\n    HERE(to)", ("temporary", 0.7, "to")),
    ("d = None\nd = tempfile.mkdtemp()\nHERE(d)", ("temporary", 1.0, "")),
    ("d = '.'\nd = tempfile.mkdtemp()\nHERE(d)", ("temporary", 0.7, "")),
    ("with tempfile.TemporaryDirectory() as d: HERE(d)", ("temporary", 1.0, "")),
    ("async def f():\n    async with anyio.TemporaryDirectory() as d: HERE(d)", ("temporary", 1.0, "")),
    ("def g(): return tempfile.mkdtemp()\nHERE(g())", ("temporary", 1.0, "")),
    ("def g():\n    with tempfile.TemporaryDirectory() as d: yield d\nwith g() as x: HERE(x)", ("temporary", 1.0, "")),
    ("def g(to): return to\nHERE(g('.'))", ("unknown", 0.0, "")),
    ("class A:\n    @staticmethod\n    def g(): return tempfile.mkdtemp()\nHERE(A.g())", ("temporary", 1.0, "")),
    (
        "class A:\n    def __init__(self): self.d = tempfile.mkdtemp()\n    def f(self): HERE(self.d)",
        ("temporary", 1.0, "")
    ),
    ("class A:\n    root = Path('.')\n    def f(self): HERE(self.root / 'x')", ("working", 0.9, "")),
    ("def f(stack): HERE(stack.enter_context(tempfile.TemporaryDirectory()))", ("temporary", 1.0, "")),
    ("a = b\nb = a\nHERE(a)", ("unknown", 0.0, "")),
])  # fmt: skip
def test_a_name_leads_where_it_was_assigned(text: str, expected: tuple[str, float, str]) -> None:
    assert place(text) == expected


@each("text, own", [
    ("HERE('a.pkl')", True),
    ("HERE(open('a.pkl', 'rb'))", True),
    ("HERE(open('a.py').read())", True),
    ("A = 'a.pkl'\nHERE(open(A))", True),
    ("with open('a.pkl') as f: HERE(f)", True),
    ("with open('a.pkl') as f: HERE(f.read())", True),
    ("f = open('a.pkl')\nHERE(f)", True),
    ("def g(a): HERE(open(a))", False),
    ("def g(a):\n    with open(a) as f: HERE(f)", False),
    ("with socket() as f: HERE(f)", False),
    ("def g(a): HERE(a)", False),
    ("HERE(open())", False),
])
def test_a_file_of_constant_name_is_the_projects_own(text: str, own: bool) -> None:
    module = module_of(source(text))
    assert module is not None
    ((call, site),) = [(call, site) for call, site in module.calls() if last_name(call.func) == "HERE"]
    assert is_own_file(module, call.args[0], site.scope) is own
