"""Files held against the PLA's contracts: which contract each document means to keep, and what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

import msgspec

from pmagent.contracts.checking import CONTRACTS, check, contract_of
from pmagent.contracts.strict_json import NotJson, pointer, read
from pmagent.events.errors import PmagentError

_NAMED: Final = re.compile(rf"(?<![a-z])({'|'.join(CONTRACTS)})(?![a-z])")
LINES: Final = (".jsonl", ".ndjson")


class Untold(PmagentError, exit_code=2):
    """A document does not show which contract it means to keep."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a document; ``line`` of the file where each line is one, else 0. ``contract`` is None where
    what stands there is no JSON, and nobody said."""

    line: int
    contract: str | None
    kind: str
    pointer: str
    text: str


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's documents, counted by contract, and what is wrong with them."""

    file: str
    documents: int
    contracts: dict[str, int]
    faults: list[Fault]


def checked_file(name: str, content: bytes, contract: str | None) -> CheckedFile:
    """Check ``content``: one JSON document, or one a line. ``contract``: the one that all of it has to keep; None: the
    one that stands in the file's ``name``, else the one that a document's keys tell. Raises Untold."""
    named = _NAMED.search(PurePath(name).name)
    wanted = contract or (named[1] if named else None)
    counted: Counter[str] = Counter()
    faults: list[Fault] = []
    documents = 0
    for line, raw in _documents(name, content):
        documents += 1
        kept, found = _checked(raw, wanted, f"{name}, line {line}" if line else name)
        if kept is not None:
            counted[kept] += 1
        faults += [Fault(line=line, contract=kept, kind=kind, pointer=place, text=text) for kind, place, text in found]
    return CheckedFile(file=name, documents=documents, contracts=dict(counted), faults=faults)


def _documents(name: str, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Line number (0: the whole is one document) and bytes."""
    lines = content.split(b"\n")
    if not name.endswith(LINES) and not _is_lines(lines):
        yield 0, content
        return
    if lines[-1] == b"":
        lines.pop()
    yield from enumerate(lines, 1)


def _is_lines(lines: list[bytes]) -> bool:
    """Whether each line is a document: there are several, of which the first is a JSON object by itself."""
    if sum(bool(line.strip()) for line in lines) < 2:
        return False
    try:
        return isinstance(read(lines[0]), dict)
    except NotJson:
        return False


def _checked(raw: bytes, wanted: str | None, where: str) -> tuple[str | None, list[tuple[str, str, str]]]:
    try:
        document = read(raw)
    except NotJson as problem:
        return wanted, [("schema_validation", pointer(problem.path), problem.text)]
    contract = wanted or contract_of(document)
    if contract is None:
        raise Untold(f"{where}: it does not show which contract it means to keep", "say it: --contract NAME")
    return contract, [(one.kind, one.pointer, one.text) for one in check(contract, document)]
