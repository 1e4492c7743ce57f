"""No file that parses can break a detector, hold it up, or make it say two things."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.engineering import ProjectReader
from pmagent.actors.audit.detectors.code.personas import PersonaReader
from pmagent.actors.audit.detectors.code.source import Detector, Source
from pmagent.actors.audit.detectors.code.state import StateReader
from pmagent.actors.audit.detectors.code.table import TableReader
from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, Finding
from tests.support.cases import each
from tests.support.effort import some

READERS: tuple[Callable[[], Detector], ...] = (ProjectReader, PersonaReader, StateReader, TableReader)

HEAD = """
import operator, os, pickle, re, subprocess, tempfile
from typing import Annotated, TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
from pydantic import BaseModel
llm = ChatOpenAI()
"""
NAMES = st.sampled_from([
    "os", "subprocess", "llm", "x", "self", "tempfile", "re", "score", "scores", "cmd", "d", "url", "operator", "state",
])  # fmt: skip
ATTRIBUTES = st.sampled_from([
    "system", "run", "invoke", "mkdtemp", "name", "content", "score", "search", "add", "value", "compile", "append",
    "with_structured_output", "split", "format", "join", "returncode", "write_text", "returned",
])  # fmt: skip
LITERALS = st.sampled_from([
    "1", "None", "True", "''", "'git'", "'clone'", "'--'", "'%s'", "'{}'", "b'x'", "...", "1.5",
])  # fmt: skip
TEXT = repr("You are the Prosecutor. Find the gaps and the flaws in all that you are shown, and doubt each of them.")


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds("{}.{}".format, inner, ATTRIBUTES),
        st.builds(lambda call, given: f"{call}({', '.join(given)})", inner, several),
        st.builds(
            lambda call, one: f"{call}({one}, shell=True, cwd={one}, timeout=3, checkpointer={one})", inner, inner
        ),
        st.builds(lambda parts: f"[{', '.join(parts)}]", several),
        st.builds(lambda key, one: f"{{{key}: {one}}}", LITERALS, inner),
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} % {})".format, inner, inner),
        st.builds("({} | {})".format, inner, inner),
        st.builds("({} > {})".format, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("(lambda x: {})".format, inner),
        st.builds("[{} for d in {}]".format, inner, inner),
        st.builds("({} if {} else x)".format, inner, inner),
        st.builds("(url := {})".format, inner),
        st.builds("Annotated[{}, {}]".format, inner, inner),
        st.builds("max({0}) - min({0})".format, inner),
        st.builds("eval({})".format, inner),
    )


EXPRESSIONS = st.recursive(NAMES | LITERALS | st.just(TEXT), _expressions, max_leaves=8)


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for text in lines for line in text.split("\n")) or "    pass"


def _statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(_indented)
    return st.one_of(
        st.builds("def {}(self, url, x={}):\n{}".format, NAMES, EXPRESSIONS, body),
        st.builds("class {}(TypedDict):\n    score: {}\n{}".format, st.just("WorkState"), EXPRESSIONS, body),
        st.builds("for x in {}:\n{}".format, EXPRESSIONS, body), st.builds("while {}:\n{}".format, EXPRESSIONS, body),
        st.builds("with {} as d:\n{}".format, EXPRESSIONS, body),
        st.builds("try:\n{}\nexcept {} as x:\n{}".format, body, NAMES, body),
        st.builds("if {}:\n{}".format, EXPRESSIONS, body),
    )


SIMPLE = st.one_of(
    EXPRESSIONS, st.builds("{} = {}".format, NAMES, EXPRESSIONS), st.builds("self.x = {}".format, EXPRESSIONS),
    st.builds("{} += {}".format, NAMES, EXPRESSIONS), st.builds("a, x = {}, {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("import os as {}".format, NAMES), st.builds("from subprocess import run as {}".format, NAMES),
    st.builds("score: {} = {}".format, EXPRESSIONS, EXPRESSIONS), st.just("global x"), st.just("from os import *"),
)
PROGRAMS = st.lists(st.recursive(SIMPLE, _statements, max_leaves=6), max_size=6).map("\n".join)


def look(text: str) -> list[Finding]:
    tree = ast.parse(text)
    found: list[Finding] = []
    for reader in READERS:
        detector = reader()
        detector.take(Source("app/main.py", text, tree, "code"))
        found.extend(detector.findings())
        assert all(count >= 0 for count in detector.examined.values())
    return found


@settings(deadline=None)
@given(PROGRAMS)
def test_every_program_is_read_to_the_end_and_always_alike(program: str) -> None:
    text = HEAD + program
    try:
        compile(text, "program", "exec", ast.PyCF_ONLY_AST)
    except SyntaxError:
        return
    findings = look(text)
    assert findings == look(text)
    for finding in findings:
        assert finding.goal in GOALS
        assert 1 <= finding.line <= text.count("\n") + 1
        assert 0 < finding.confidence <= 1
        assert finding.text
        assert len(finding.text) <= CONTENT_CHARS_MAX
        finding.text.encode()


def _hostile() -> Iterator[tuple[str, str]]:
    yield "a chain of calls", "x" + ".invoke(1)" * 400
    yield "a chain of attributes", "os" + ".path" * 900 + "(x)"
    yield "a sum", "os.system(" + " + ".join(["'a'", "x"] * 300) + ")"
    yield (
        "names that double",
        "\n".join(["a0 = 'ab'", *(f"a{n} = a{n - 1} + a{n - 1}" for n in range(1, 60)), "os.system(a59)"]),
    )
    yield "names in a ring", "a = b\nb = c\nc = a\n" * 300 + "os.system(a)\na.invoke(b)"
    yield "a name set often", "\n".join(f"x = y{n % 7}.z(x)\ny{n % 7} = x" for n in range(600)) + "\nos.system(x)"
    yield (
        "attributes set often",
        "class A:\n    def f(self):\n"
        + "".join(
            f"        self.a{n % 5} = self.a{(n + 1) % 5}\n        os.system(self.a{n % 5})\n" for n in range(150)
        ),
    )
    yield "a list that grows", "cmd = ['git']\n" + "cmd.append(x)\ncmd += ['clone']\n" * 1_500 + "subprocess.run(cmd)"
    yield "many starts", "cmd = ['git', 'clone']\n" + "subprocess.run(cmd + [x])\n" * 1_500
    yield "a long text", f"PROMPT = '''You are the judge. {'word ' * 200_000}'''"
    yield "many prompts", "\n".join(f"JUDGE_{n}_PROMPT = 'You are the Judge{n}. {'say so ' * 40}'" for n in range(500))
    yield "a format with many holes", f"os.system('{'{}' * 3_000}'.format(*x))\nos.system('{'%s' * 3_000}' % x)"
    yield "a deep branch", "if x > score:\n    pass\n" + "elif x > score:\n    x = min(score, 3)\n" * 900
    yield "a wide dict", "PROMPTS = {" + ", ".join(f"'k{n}': 'You are the {n}. ' + x" for n in range(5_000)) + "}"
    yield "annotations", "\n".join(f"x{n}: 'Annotated[list, operator.add]' = 1" for n in range(3_000))
    yield "classes in a ring", "".join(f"class A{n}(A{(n + 1) % 400}):\n    x: int\n" for n in range(400))
    handed = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(800))
    yield "functions that return each other", f"{handed}f0(llm.invoke(x))"
    yield "one answer everywhere", "r = llm.invoke(1)\n" + "r = re.search('a', r)\n" * 800
    yield "half a surrogate in a secret", "password = '\\ud800secret-secret1'\nos.system('\\ud800' + x)"
    yield "half a surrogate in a prompt", f"PROMPT = 'You are the \\udfff judge. {'a ' * 60}'"


HOSTILE = dict(_hostile())


@each("name", some(list(HOSTILE), 8))
def test_no_program_holds_a_detector_up(name: str) -> None:
    text = HEAD + HOSTILE[name]
    started = time.process_time()
    findings = look(text)
    assert time.process_time() - started < 10
    for finding in findings:
        finding.text.encode()


def test_twice_the_code_takes_about_twice_the_steps() -> None:
    block = HEAD + (
        "def f{n}(self, url, scores):\n"
        "    cmd = ['git', 'clone', url, tempfile.mkdtemp()]\n"
        "    done = subprocess.run(cmd, timeout=3)\n"
        "    if done.returncode:\n        raise ValueError(url)\n"
        "    answer = llm.invoke('x')\n"
        "    return min(re.search('a', answer.content), max(scores) - min(scores))\n"
    )

    def steps(blocks: int) -> int:
        """So many functions are called."""
        calls = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal calls
            calls += event == "call"

        text = "".join(block.replace("{n}", str(n)) for n in range(blocks))
        sys.setprofile(count)
        try:
            look(text)
        finally:
            sys.setprofile(None)
        return calls

    assert steps(80) < 6 * steps(20)
