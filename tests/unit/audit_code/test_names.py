"""The name of an expression: through imports, aliases, scopes, assignments; none where that cannot be told."""

from __future__ import annotations

import ast

from pmagent.actors.audit.detectors.code.names import called, dotted, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, module_of
from tests.support.cases import each
from tests.support.detected import source


def module(text: str) -> Module:
    found = module_of(source(text))
    assert found is not None
    return found


def named(text: str) -> str:
    """The name of the first argument of the call ``HERE(…)``."""
    found = module(text)
    for call, site in found.calls():
        if last_name(call.func) == "HERE":
            return dotted(found, call.args[0], site.scope)
    raise AssertionError(text)


@each("text, name", [
    ("import os\nHERE(os.path.join)", "os.path.join"),
    ("import os.path\nHERE(os.path.join)", "os.path.join"),
    ("import os.path as p\nHERE(p.join)", "os.path.join"),
    ("from os import path as p\nHERE(p.join)", "os.path.join"),
    ("from . import a\nHERE(a.b)", ".a.b"),
    ("from .x import a\nHERE(a.b)", ".x.a.b"),
    ("from os import *\nHERE(system)", "os.system"),
    ("HERE(print)", "builtins.print"),
    ("HERE(nobody.knows)", ""),
    ("def f(): ...\nHERE(f)", ":f"),
    ("class A: ...\nHERE(A().b)", ":A().b"),
    ("import os\na = os\nb = a\nHERE(b.path)", "os.path"),
    ("import os\ndef f(os): HERE(os.path)", ""),
    ("import os\ndef f():\n    os = 1\n    HERE(os.path)", ""),
    ("def f():\n    import os\n    def g(): HERE(os.path)", "os.path"),
    ("import os\nclass A:\n    os = None\n    def f(self): HERE(os.path)", "os.path"),
    ("import a, b\nx = a.f\nx = b.f\nHERE(x)", "b.f"),
    ("import a, b\nx = a.f\nHERE(x)\nx = b.f", "a.f"),
    ("import a\ndef f(): HERE(x)\nx = a.f", "a.f"),
    ("import a\ndef f():\n    global x\n    x = a.f\nHERE(x)", "a.f"),
    ("import a\nclass A:\n    def __init__(self): self.x = a.f()\n    def g(self): HERE(self.x.y)", "a.f().y"),
    ("import a\nclass A:\n    x = a.f\n    def g(self): HERE(self.x)", "a.f"),
    ("class A:\n    def __init__(self, x): self.x = x\n    def g(self): HERE(self.x.y)", ""),
    ("import a\nwith a.f() as x: HERE(x.y)", "a.f().y"),
    ("import a\nx, y = a.f, a.g\nHERE(y)", "a.g"),
    ("import a\nfor x in a.f: HERE(x)", ""),
    ("async def f():\n    import a\n    HERE((await a.f()).x)", "a.f().x"),
    ("HERE(__import__('os').system)", "os.system"),
    ("import importlib\nHERE(importlib.import_module('a.b').c)", "a.b.c"),
    ("import os\nHERE(getattr(os, 'system'))", "os.system"),
    ("a = b\nb = a\nHERE(a)", ""),
    ("try:\n    import a\nexcept ImportError as a:\n    HERE(a.b)", ""),
    ("import a\nmatch 1:\n    case a:\n        HERE(a.b)", ""),
    ("import a\nHERE((lambda a: a.b)(1))", ""),
])
def test_a_name_is_what_it_is_bound_to(text: str, name: str) -> None:
    assert named(text) == name


def test_a_call_is_looked_up_once() -> None:
    found = module("import os\nos.system('a')")
    ((call, site),) = found.calls()
    assert called(found, call, site) == "os.system"
    found.scope.bindings.clear()
    assert called(found, call, site) == "os.system"


@each(
    "text, name",
    [
        ("a", "a"), ("a.b.c", "c"), ("a.b(1)", "b"), ("a[0]", "a"), ("a.b[0](1)", "b"), ("'a.b.C'", "C"), ("1", ""),
        ("'a b'", ""),
    ],
)  # fmt: skip
def test_the_last_name_is_what_is_written_last(text: str, name: str) -> None:
    assert last_name(ast.parse(text, mode="eval").body) == name


def test_a_statement_knows_what_stands_around_it() -> None:
    text = """
        def f():
            for x in y:
                try:
                    a()
                except E:
                    b()
                else:
                    c()
        d()
    """
    around = {
        last_name(call.func): [(type(frame.stmt).__name__, frame.field) for frame in site.around()]
        for call, site in module(text).calls()
    }
    inside = [("Try", "body"), ("For", "body")]
    assert around == {
        "a": [("Expr", "body"), *inside], "b": [("Expr", "handlers"), *inside], "c": [("Expr", "orelse"), *inside],
        "d": [("Expr", "body")],
    }


def test_a_handler_is_part_of_its_try_and_what_stands_in_it_of_its_own_statement() -> None:
    found = module("try:\n    a()\nexcept OSError:\n    b()\n    c()\nexcept KeyError:\n    d()\n")
    handlers = [site.stmt for site in found.sites(ast.ExceptHandler)]
    assert handlers == [found.tree.body[0]] * 2
    frames = [next(site.around()) for _, site in found.calls()]
    assert [(one.stmt.lineno, one.field) for one in frames] == [
        (2, "body"), (4, "handlers"), (5, "handlers"), (7, "handlers"),
    ]  # fmt: skip
