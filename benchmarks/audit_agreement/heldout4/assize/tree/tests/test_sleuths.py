import ast

from assize.sleuths import in_module


def test_a_shell_is_a_flaw():
    found = in_module(ast.parse("import os\nos.system('ls ' + x)\n"), "a.py")
    assert found == [("safety", "a.py:2 calls os.system('ls ' + x)", True)]


def test_reducers_are_seen():
    text = "class S(TypedDict):\n    a: Annotated[list, operator.add]\n    b: str\n"
    assert "merged: ['a']" in in_module(ast.parse(text), "s.py")[0][1]
