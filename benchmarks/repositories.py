"""Git repositories of any size, generated: Python files that look like an agent project's, and a long history."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

_BEGAN = 1_700_000_000
_WORDS = (
    "agent", "answer", "batch", "cache", "chunk", "claim", "client", "config", "context", "count", "detail", "draft",
    "entry", "event", "field", "graph", "group", "index", "item", "judge", "label", "limit", "message", "model", "node",
    "page", "part", "path", "plan", "prompt", "query", "reply", "report", "result", "score", "state", "store", "table",
)  # fmt: skip


def generate(folder: Path, files: int, commits: int) -> int:
    """Make a repository in ``folder`` with so many Python files in so many commits; bytes of its files."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    chance = random.Random(files)
    texts = [_module(chance, number) for number in range(files)]
    stream = subprocess.Popen(["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert stream.stdin is not None
    with stream.stdin as pipe:
        for part in _history(chance, texts, commits):
            pipe.write(part)
    assert stream.wait() == 0
    return sum(map(len, texts))


def _history(chance: random.Random, texts: list[bytes], commits: int) -> Iterator[bytes]:
    """Every file comes in some commit, in its last form in the last; the rest of the commits change one."""
    each = -(-len(texts) // commits)
    for number in range(commits):
        changed = list(range(number * each, min((number + 1) * each, len(texts))))
        changed = changed or [chance.randrange(len(texts))]
        message = f"{chance.choice(('Add', 'Mend', 'Test', 'Move'))} {chance.choice(_WORDS)} {number}".encode()
        when = _BEGAN + number * 1800
        yield b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\n" % when
        yield b"data %d\n%s\n" % (len(message), message)
        for index in changed:
            text = texts[index] + (b"" if number * each == index else b"# %d\n" % number)
            yield b"M 100644 inline package/part%d/module%d.py\n" % (index % 50, index)
            yield b"data %d\n%s\n" % (len(text), text)


def _module(chance: random.Random, number: int) -> bytes:
    """A module of some hundred lines: imports, a class or two, functions that call, compare, loop and handle errors."""
    lines = [f'"""Module {number}."""', "", "import json", "import subprocess", "from pathlib import Path", ""]
    lines += [f"from package.part{number % 50} import module{max(number - 1, 0)}", "", ""]
    if number % 100 == 0:
        lines += _graph(number)
    for _ in range(chance.randint(1, 3)):
        lines += _class(chance)
    for _ in range(chance.randint(3, 10)):
        lines += _function(chance, "")
    return "\n".join(lines).encode()


def _graph(number: int) -> list[str]:
    nodes = [f"    builder.add_node('n{one}', run)" for one in range(4)]
    edges = [f"    builder.add_edge(START, 'n{one}')" for one in range(3)]
    return [
        "import operator", "from typing import Annotated, TypedDict", "",
        "from langgraph.graph import END, START, StateGraph", "", "",
        f"class State{number}(TypedDict):", "    found: Annotated[list[str], operator.add]", "", "",
        "def build():", f"    builder = StateGraph(State{number})", *nodes, *edges,
        "    builder.add_edge(['n0', 'n1', 'n2'], 'n3')", "    builder.add_edge('n3', END)",
        "    return builder.compile()", "", "",
    ]  # fmt: skip


def _class(chance: random.Random) -> list[str]:
    name = "".join(word.title() for word in chance.sample(_WORDS, 2))
    lines = [f"class {name}:", f'    """A {name}."""', "", "    def __init__(self, path: Path) -> None:"]
    lines += ["        self.path = path", "        self.items: dict[str, int] = {}", ""]
    for _ in range(chance.randint(2, 5)):
        lines += _function(chance, "    ")
    return [*lines, ""]


def _function(chance: random.Random, indent: str) -> list[str]:
    one, other, third = chance.sample(_WORDS, 3)
    receiver = "self, " if indent else ""
    body = [
        f"def {one}_{other}({receiver}{other}: str, {third}: int = {chance.randint(0, 99)}) -> list[str]:",
        f'    """{one.title()} the {other} by its {third}."""',
        f"    found = [f'{{{other}}} {{n}}' for n in range({third}) if n % {chance.randint(2, 9)}]",
        f"    for {one} in found:",
        f"        if {one} == '{third}' and len({one}) > {chance.randint(1, 9)}:",
        f"            found.append(json.dumps({{'{one}': {one}, '{third}': {third}}}))",
    ]
    if chance.random() < 0.2:
        body += ["    try:", f"        subprocess.run(['{one}', {other}], check=True, timeout={chance.randint(1, 60)})"]
        body += ["    except subprocess.CalledProcessError as error:", "        raise RuntimeError(other) from error"]
    return [f"{indent}{line}" for line in [*body, "    return sorted(found)", ""]]
