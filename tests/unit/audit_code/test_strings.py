"""The value of a string expression, without running it."""

from __future__ import annotations

import ast
import textwrap

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.names import last_name
from pmagent.actors.audit.detectors.code.scopes import Scope, module_of
from pmagent.actors.audit.detectors.code.strings import folded, is_constant, with_holes
from tests.support.cases import each
from tests.support.detected import source


def here(text: str) -> tuple[str | None, str | None, bool]:
    """The first argument of ``HERE(…)``: folded, with holes, and whether it is constant."""
    module = module_of(source(text))
    assert module is not None
    for call, site in module.calls():
        if last_name(call.func) == "HERE":
            found: tuple[ast.expr, Scope] = (call.args[0], site.scope)
            return folded(module, *found), with_holes(module, *found), is_constant(module, *found)
    raise AssertionError(text)


@each("text, said", [
    ("HERE('a' 'b')", "ab"),
    ("HERE('a' + 'b' + f'c{1}')", "abc1"),
    ("A = 'a'\nHERE(f'{A}b')", "ab"),
    ("A = 'a'\nB = A + 'b'\ndef f(): HERE(B)", "ab"),
    ("HERE(', '.join(['a', 'b']))", "a, b"),
    ("HERE('a %s %d%%' % ('b', 'c'))", "a b c%"),
    ("HERE('a {} {x}'.format('b', x='c'))", "a b c"),
    ("import textwrap\nHERE(textwrap.dedent('''\n    a\n      b\n'''))", "\na\n  b\n"),
    ("from inspect import cleandoc as c\nHERE(c('''a\n    b'''))", "a\nb"),
    ("HERE('  a '.strip())", "a"),
    ("HERE(str('a'))", "a"),
    ("HERE(b'a')", "a"),
    ("class A:\n    B = 'a'\nHERE(A.B)", "a"),
    ("import enum\nclass A(enum.Enum):\n    B = 'a'\nHERE(A.B.value)", "a"),
    ("class A:\n    B = 'a'\n    def f(self): HERE(self.B)", "a"),
    ("HERE((x := 'a'))", "a"),
])
def test_a_text_that_is_written_out_is_known(text: str, said: str) -> None:
    assert here(text) == (said, said, True)


@each("text, said", [
    ("def f(x): HERE('a' + x)", "a{}"),
    ("def f(x): HERE(f'a{x}b{x!r}')", "a{}b{}"),
    ("def f(x): HERE('a%s' % x)", "a{}"),
    ("def f(x): HERE('a{}b'.format(x))", "a{}b"),
    ("def f(x): HERE(' '.join(['a', x]))", "a {}"),
    ("def f(x):\n    y = 'a' + x\n    HERE(y + 'b')", "a{}b"),
    ("from a import B\nHERE('a' + B)", "a{}"),
    ("HERE('a' + open('b').read())", "a{}"),
])
def test_what_is_not_known_is_a_hole(text: str, said: str) -> None:
    assert here(text) == (None, said, False)


@each(
    "text",
    ["def f(x): HERE(x)", "HERE(1 + 2j if a else b)", "HERE(a.b.c)", "x = g()\nHERE(x)", "for x in g(): HERE(x)"],
)
def test_what_is_no_text_has_none(text: str) -> None:
    assert here(text) == (None, None, False)


@each("text, constant", [
    ("HERE(['a', ('b', 1)])", True),
    ("HERE(['a', x])", False),
    ("x = 'a'\nif y: x = 'b'\nHERE(x)", True),
    ("x = 'a'\nif y: x = y\nHERE(x)", False),
    ("x = 'a'\nx += 'b'\nHERE(x)", True),
    ("x = 'a'\nx += y\nHERE(x)", False),
    ("for x in ['a', 'b']: HERE(x)", True),
    ("for x in y: HERE(x)", False),
    ("HERE('a' if y else 'b')", True),
    ("def f(x='a'): HERE(x)", False),
    ("with open('a') as x: HERE(x)", False),
    ("import x\nHERE(x)", False),
])
def test_a_name_is_constant_if_all_that_it_is_given_is(text: str, constant: bool) -> None:
    assert here(text)[2] is constant


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_folding_is_what_python_makes_of_it(parts: list[str]) -> None:
    written = " + ".join(map(repr, parts))
    assert here(f"HERE({written})")[0] == "".join(parts)
    assert here(f"HERE(''.join([{', '.join(map(repr, parts))}]))")[0] == "".join(parts)


@settings(deadline=None)
@given(st.text(alphabet="ab \n\t", max_size=20))
def test_dedenting_is_what_python_makes_of_it(text: str) -> None:
    assert here(f"import textwrap\nHERE(textwrap.dedent({text!r}))")[0] == textwrap.dedent(text)
