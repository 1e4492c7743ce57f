"""Files of every kind are parsed, or refused with a reason in words of ours."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.decode import (
    NOT_UTF8,
    NULS,
    TWO_ENCODINGS,
    UNKNOWN_ENCODING,
    WRONG_ENCODING,
    decoded,
)
from pmagent.actors.audit.detectors.code.notebook import BROKEN, FOREIGN, SHAPELESS, plain
from pmagent.actors.audit.detectors.code.parse import (
    CONFLICT,
    INDENTATION,
    LFS,
    PYTHON_2,
    SYNTAX,
    TEMPLATE,
    TOO_DEEP,
    is_installed,
    is_python,
    parsed,
    role_of,
)
from tests.support.cases import each


@each("content, text", [
    (b"x = 1", "x = 1"),
    (b"\xef\xbb\xbfx = 1", "x = 1"),
    (b"\xef\xbb\xbf# coding: utf-8\nx = 1", "# coding: utf-8\nx = 1"),
    (b"# coding: latin-1\nx = '\xe4'", "# coding: latin-1\nx = 'ä'"),
    (
        b"#!/usr/bin/python\r# -*- coding: cp1252 -*-\rx = '\x80'",
        "#!/usr/bin/python\n# -*- coding: cp1252 -*-\nx = '€'",
    ),
    (b"\n# vim: set fileencoding=iso-8859-15 :\nx = '\xa4'", "\n# vim: set fileencoding=iso-8859-15 :\nx = '€'"),
    (b"\f# coding=utf-8-sig\nx = 1", "\f# coding=utf-8-sig\nx = 1"),
    (b"x = 1\r\ny = 2\rz = 3\n", "x = 1\ny = 2\nz = 3\n"),
    (b"", ""),
])
def test_encodings_are_read_as_python_reads_them(content: bytes, text: str) -> None:
    assert decoded(content) == (text, "")
    assert parsed("a.py", content).reason == ""


@each("content, fault", [
    (b"x = '\xe4'", NOT_UTF8),
    (b"x = 1\n\n# coding: latin-1\ny = '\xe4'", NOT_UTF8),
    (b"x = 1  # a line of code\n# coding: latin-1\ny = '\xe4'", NOT_UTF8),
    (b"# coding: rot13\nx = 1", UNKNOWN_ENCODING),
    (b"# coding: zlib\nx = 1", UNKNOWN_ENCODING),
    (b"# coding: no-such-thing\nx = 1", UNKNOWN_ENCODING),
    (b"# coding: utf-8\nx = '\xe4'", WRONG_ENCODING),
    (b"\xef\xbb\xbf# coding: latin-1\nx = 1", TWO_ENCODINGS),
    ("x = 1".encode("utf-16"), "is UTF-16: Python refuses it"),
    ("x = 1".encode("utf-16-be"), "is UTF-16: Python refuses it"),
    ("x = 1".encode("utf-32"), "is UTF-32: Python refuses it"),
])
def test_what_python_refuses_is_told_and_read_all_the_same(content: bytes, fault: str) -> None:
    source = parsed("a.py", content)
    assert source.reason == fault
    assert isinstance(source.tree, ast.Module)
    with pytest.raises((SyntaxError, ValueError, LookupError)):
        compile(content, "a.py", "exec")


@each("content", [b"x = 1\n\0", b"\0" * 100, b"\x7fELF\0\1\2", b"\xff\xfe\0\0\xff\xff\xff\xff", b"\xff\xfea"])
def test_binary_files_are_no_text(content: bytes) -> None:
    source = parsed("a.py", content)
    assert (source.tree, source.reason) == (None, NULS)


def test_a_nul_is_told_with_its_line() -> None:
    assert parsed("a.py", b"x = 1\ny = 2\n\0\n").line == 3


@each("text", [
    "print 'hello'", "print x, y", "print", "print >>f, 'x' % y", 'print "a = %s" % a', "if x: print y",
    "raise ValueError, 'text'", "exec 'x = 1'", "exec code in names", "x = 0777", "x = 10L", "x = 0xffL",
    "if a <> b: pass", "x = `y`", "x = ur'text'", "def f(a, (b, c)): pass",
    "try:\n    pass\nexcept ValueError, error:\n    pass", "try:\n    pass\nexcept (A, B), error:\n    pass",
])  # fmt: skip
def test_python_2_is_known(text: str) -> None:
    source = parsed("a.py", f"x = 1\n{text}\n".encode())
    if text in {"print", "print >>f, 'x' % y"}:  # Python 3 too
        assert source.reason == ""
    else:
        assert (source.tree, source.reason) == (None, PYTHON_2)
        assert source.line == 2 + max(text.count("\n") - 1, 0)


@each("text, reason, line", [
    ("def f(:\n    pass", SYNTAX, 1),
    ("x = 1\nprint(x\ny = 2", SYNTAX, 2),
    ("x = (1,\n", SYNTAX, 1),
    ("x = '''\n\n", SYNTAX, 1),
    ("if x:\npass", INDENTATION, 2),
    ("if x:\n\ty = 1\n        z = 1", INDENTATION, 3),
    ("class {{ name }}:\n    pass", TEMPLATE, 1),
    ("x = 1\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> other\n", CONFLICT, 2),
    ("x = " + "-" * 20_000 + "1", TOO_DEEP, 0),
    ("x = a" + ".b" * 20_000, TOO_DEEP, 0),
    ("x = " + "9" * 5_000, SYNTAX, 1),
])
def test_what_does_not_parse_is_told_with_its_line(text: str, reason: str, line: int) -> None:
    source = parsed("a.py", text.encode())
    assert (source.tree, source.reason, source.line) == (None, reason, line)


def test_warnings_of_the_parser_stay_there() -> None:
    assert parsed("a.py", b"x = '\\d'\nif x is 'a': pass\nassert (x, 'y')\n").tree is not None


def test_lines_of_the_text_are_lines_of_the_tree() -> None:
    content = b"a = 1\r\nb = '''\x0c\r\n\xc2\x85'''\rc = 2\n\x0cd = 3\n"
    source = parsed("a.py", content)
    assert source.tree is not None
    lines = source.text.split("\n")
    for node in source.tree.body:
        assert isinstance(node, ast.Assign)
        assert isinstance(node.targets[0], ast.Name)
        assert lines[node.lineno - 1].lstrip("\x0c").startswith(f"{node.targets[0].id} =")


def test_a_long_file_is_parsed() -> None:
    source = parsed("a.py", b"".join(b"x%d = %d\n" % (n, n) for n in range(50_000)))
    assert source.tree is not None
    assert len(source.tree.body) == 50_000


def test_a_pointer_of_git_lfs_is_no_code() -> None:
    source = parsed("a.py", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert (source.tree, source.reason) == (None, LFS)


@each(
    "path, head, answer",
    [
        ("a.py", b"", True), ("a.pyi", b"", True), ("a.pyw", b"", True), ("a.ipynb", b"", True), ("a.pyc", b"", False),
        ("a", b"#!/usr/bin/env python3\n", True), ("a", b"#!/usr/bin/python2.7 -E\n", True),
        ("a", b"#!/bin/sh\n", False),
        ("a", b"#! /usr/bin/env -S python -u\n", True), ("a", b"#!/opt/pythonic/run\n", False), ("a", b"", False),
        ("a.sh", b"#!/usr/bin/python\n", False), ("py", b"import os", False), ("d.py/a", b"", False),
    ],
)  # fmt: skip
def test_python_is_known_by_its_name_or_its_first_line(path: str, head: bytes, answer: bool) -> None:
    assert is_python(path, head) is answer


@each(
    "path, role",
    [
        ("a.py", "code"), ("src/app/graph.py", "code"), ("tests/a.py", "test"), ("src/tests/deep/a.py", "test"),
        ("test_a.py", "test"), ("a_test.py", "test"), ("conftest.py", "test"), ("contest.py", "code"),
        ("testing.py", "code"), ("latest.py", "code"), ("examples/a.py", "example"), ("docs/conf.py", "example"),
        ("examples/tests/a.py", "test"), ("demo.py", "code"), ("test.py", "test"), ("src/attest/a.py", "code"),
    ],
)  # fmt: skip
def test_the_role_follows_from_the_path(path: str, role: str) -> None:
    assert role_of(path) == role


def test_installed_packages_are_somebody_elses() -> None:
    assert is_installed("venv/lib/python3.11/site-packages/x/y.py")
    assert is_installed("web/node_modules/a/gyp.py")
    assert not is_installed("src/venv.py")


def notebook(*cells: Any, form: int = 4, **metadata: Any) -> bytes:
    if form == 3:
        made = [{"cell_type": "code", "input": cell, "language": "python"} for cell in cells]
        return json.dumps({"nbformat": 3, "metadata": metadata, "worksheets": [{"cells": made}]}).encode()
    found = [{"cell_type": "markdown", "source": "# print 'x'"}, *({"cell_type": "code", "source": c} for c in cells)]
    return json.dumps({"nbformat": 4, "metadata": metadata, "cells": found}).encode()


@each("form", [3, 4])
@each("lines", [True, False])
def test_cells_of_notebooks_are_one_text(form: int, lines: bool) -> None:
    first: Any = ["import os\n", "x = 1"] if lines else "import os\nx = 1"
    source = parsed("a.ipynb", notebook(first, "y = 2", form=form))
    assert source.text == "import os\nx = 1\ny = 2"
    assert source.cell_lines == (1, 3)
    assert source.tree is not None
    assert [node.lineno for node in source.tree.body] == [1, 2, 3]
    assert source.reason == ""


def test_a_cell_that_does_not_parse_is_left_blank_and_told() -> None:
    source = parsed("a.ipynb", notebook("x = 1", "y = 2\nprint 'z'\n", "w = 3"))
    assert source.tree is not None
    assert [node.lineno for node in source.tree.body] == [1, 5]
    assert (source.reason, source.line, source.cell_lines) == ("a cell Python 2", 3, (1, 2, 5))


@each("text, left", [
    ("%matplotlib inline\nx = 1", "pass\nx = 1"),
    ("!pip install a \\\n  b\nx = 1", "pass\n\nx = 1"),
    ("if x:\n    !ls\n    %time y = 1", "if x:\n    pass\n    pass"),
    ("files = !ls\nt = %timeit -o f()", "files = None\nt = None"),
    ("x?\nnumpy.array??\n?x", "pass\npass\npass"),
    ("%%time\nx = 1", "\nx = 1"),
    ("\n%%bash\nrm -r /\n", "\n\n\n"),
    ("%%writefile a.py\nx = (", "\n"),
    ("x = (5\n% 3)", "x = (5\npass"),
])
def test_what_is_ipythons_is_taken_out(text: str, left: str) -> None:
    assert plain(text) == left


def test_python_that_only_looks_like_magic_is_kept() -> None:
    source = parsed("a.ipynb", notebook("x = (5\n% 3)\n"))
    assert (source.text, source.reason) == ("x = (5\n% 3)\n", "")


@each(
    "content, reason",
    [
        (b"", BROKEN), (b"{", BROKEN), (b"\xff", BROKEN), (b"[" * 100_000, BROKEN),
        (b"[]", SHAPELESS), (b"{}", SHAPELESS), (b'{"cells": 1}', SHAPELESS),
        (notebook("x", language_info={"name": "R"}), FOREIGN),
        (notebook("x", kernelspec={"language": "julia"}), FOREIGN),
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_told(content: bytes, reason: str) -> None:
    source = parsed("a.ipynb", content)
    assert (source.tree, source.reason) == (None, reason)


def test_odd_cells_are_passed_over() -> None:
    cells = [1, None, {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1, "x = 1"]}, {"cell_type": "raw"}]
    source = parsed("a.ipynb", json.dumps({"cells": cells}).encode())
    assert source.text == "x = 1"


_PIECES = st.sampled_from([
    "x", "=", "(", ")", "\n", "\r", "\t", "    ", "print ", "'", '"""', "#", "coding: utf-16", "\0", "\x0c", "\\", "%",
    "!",
])


@given(st.binary() | st.lists(_PIECES, max_size=30).map("".join).map(str.encode), st.sampled_from(["a.py", "a.ipynb"]))
def test_whatever_stands_in_a_file_it_is_parsed_or_refused(content: bytes, path: str) -> None:
    source = parsed(path, content)
    assert source.tree is not None or source.reason
    assert "\r" not in source.text
    assert 0 <= source.line <= max(source.text.count("\n"), content.count(b"\n"), content.count(b"\r")) + 1
    again = parsed(path, content)
    assert (again.text, again.reason, again.line) == (source.text, source.reason, source.line)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=5))
def test_cells_stand_at_the_lines_that_are_told(cells: list[str]) -> None:
    source = parsed("a.ipynb", notebook(*cells))
    assert len(source.cell_lines) == len(cells)
    lines = source.text.split("\n")
    for cell, start in zip(cells, source.cell_lines, strict=True):
        height = cell.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
        assert len(lines) >= start - 1 + height
