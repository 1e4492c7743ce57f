"""The detectives' results: facts about a repository and a PDF, as the log holds them (docs/design.md §15.6).

A ``Finding`` says that something is there, and where; which goals there are is in ``actors/audit/goals.py``. That
something is *not* there follows from ``examined`` and the absence of findings. Nothing here is an opinion.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pmagent.contracts.payload import blob

CONTENT_CHARS_MAX: Final = 2_000
"""Longest content of a piece of evidence."""
RATIONALE_CHARS_MAX: Final = 1_000
FINDINGS_MAX: Final = 40
"""So many findings are kept for each goal; ``counts`` says how many there were."""
FILES_MAX: Final = 50_000
COMMITS_SHOWN: Final = 100

Share = Annotated[float, Meta(ge=0, le=1)]
Natural = Annotated[int, Meta(ge=0)]


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of surveys."""


class Finding(Fact, frozen=True, kw_only=True):
    """``goal`` was found at ``path`` (relative to the repository, / between names), ``line`` (from 1; 0: the file as a
    whole). ``text`` shows it: the code, or what was counted. ``confidence``: how sure it is that it is what it is taken
    for. ``reached``: the program can come there, and uses what it gets there."""

    goal: str
    path: str
    line: Natural
    text: Annotated[str, Meta(max_length=CONTENT_CHARS_MAX)]
    confidence: Share = 1.0
    reached: bool = True


class Commit(Fact, frozen=True, kw_only=True):
    """A commit; ``timestamp`` is the committer's, RFC 3339 with its offset."""

    commit: str
    message: str
    timestamp: str


class Changes(Fact, frozen=True, kw_only=True):
    """The changes that commits (merges left out) made to the code. ``added``: lines of code, without blank ones.
    ``largest``, ``first_hour``: the share of these that one commit, and the first hour, brought. ``empty``: commits
    that changed nothing, or blank lines only. ``growing``: commits that each brought a twentieth of the code."""

    added: Natural
    largest: Share
    first_hour: Share
    empty: Natural
    growing: Natural


class History(Fact, frozen=True, kw_only=True):
    """The commits of the audited branch, oldest first; ``shown`` are the first and the last of ``total``. ``span_s``:
    seconds between the first and the last; ``burst``: the largest share of commits within 30 minutes. ``cut``: it is a
    shallow repository's, and there were commits before the first. ``changes``: what the commits did to the code; None:
    that was not counted."""

    total: Natural
    shown: list[Commit]
    span_s: Natural
    burst: Share
    cut: bool = False
    changes: Changes | None = None


class GraphNode(Fact, frozen=True, kw_only=True):
    """A node of a graph in the audited code."""

    name: str
    line: Natural


class GraphEdge(Fact, frozen=True, kw_only=True):
    """An edge; ``label`` is the key of a conditional edge's map ("": none). ``kind``: conditional ones are taken or
    not, goto ones by a node that returns Command, send ones for each of many."""

    source: str
    target: str
    line: Natural
    kind: Literal["plain", "conditional", "goto", "send"] = "plain"
    label: str = ""


class CodeGraph(Fact, frozen=True, kw_only=True):
    """A StateGraph builder found in the audited code, as far as it can be read without running it. ``start`` and
    ``end`` are ``__start__`` and ``__end__``. ``unresolved``: what could not be read, ``line: why``."""

    path: str
    line: Natural
    name: str
    builder: str
    state: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    parallel_sources: list[str]
    fan_in_targets: list[str]
    compiled: bool
    unresolved: list[str] = []


Severity = Literal["error", "warning", "note"]


class GraphFault(Fact, frozen=True, kw_only=True):
    """A fault of a graph: ``rule`` (``actors/audit/graphs/faults.py``), where it stands, the names of the graph and of
    the node ("": none), and what is wrong there in one sentence."""

    rule: str
    severity: Severity
    path: str
    line: Natural
    graph: str
    node: str = ""
    text: Annotated[str, Meta(max_length=CONTENT_CHARS_MAX)]


class Unparsed(Fact, frozen=True, kw_only=True):
    """A Python file that could not be read as one; ``reason`` in a few words of ours."""

    path: str
    line: Natural
    reason: str


class Similarity(Fact, frozen=True, kw_only=True):
    """How much of their text two persona prompts share."""

    one: str
    other: str
    share: Share


class Term(Fact, frozen=True, kw_only=True):
    """Where a name, path or phrase of the rubric occurs in the repository (code, not comments): its first places."""

    term: str
    count: Natural
    places: list[Finding]


class Function(Fact, frozen=True, kw_only=True):
    """A function or method whole, secrets masked: lines ``line`` to ``end`` of ``path``. ``text``: "" where there was
    no room for it."""

    path: str
    line: Natural
    end: Natural
    name: str
    text: str


class CodePassage(Fact, frozen=True, kw_only=True):
    """A function, a class without its methods, or what is left of a file (``line`` 0, ``name`` ""), with the words in
    it, between blanks, as ``actors/audit/matters.py`` cuts them: ``words`` of its code, ``said`` those that only stand
    in its comments and long texts. ``reached``: it can run; ``test``: it belongs to a test."""

    path: str
    line: Natural
    name: str
    words: str
    said: str
    reached: bool = True
    test: bool = False


class RepoSurvey(Fact, frozen=True, kw_only=True):
    """All that is known of a repository. ``files``: its tracked paths, sorted, the first ``FILES_MAX``. ``examined``:
    what was looked at and how much of it (files, python_files, notebooks, lines, calls …); ``unread`` are Python files
    that a limit, or the lack of their content, kept from it. ``counts``: findings of
    each goal, kept or not. ``notes``: what was left out, and why. ``functions``: those that findings lie in and that
    graphs run, their texts within the budget that was asked for. ``words``: those of the code that can run, and of
    settings and templates, between blanks, as ``actors/audit/matters.py`` cuts them; ``idle_words``: those that only
    stand in other code. Where ``words`` is empty, they were not counted, or are too many. ``passages``: the code in
    pieces; none where it is too long."""

    commit: str
    branch: str
    history: History
    files: list[str]
    file_count: Natural
    examined: dict[str, int]
    graphs: list[CodeGraph]
    findings: list[Finding]
    counts: dict[str, int]
    similarities: list[Similarity]
    terms: list[Term]
    unparsed: list[Unparsed]
    notes: list[str] = []
    functions: list[Function] = []
    words: str = ""
    idle_words: str = ""
    passages: list[CodePassage] = []


class Heading(Fact, frozen=True, kw_only=True):
    """A heading; ``level`` from 1."""

    text: str
    page: Natural
    level: Natural


class Excerpt(Fact, frozen=True, kw_only=True):
    """A passage found for ``query``: on ``page`` (from 1), ``rank`` from 1. ``literal``: it holds the query's words as
    they stand; ``sentences`` how many of its sentences are about them."""

    query: str
    page: Natural
    rank: Natural
    text: Annotated[str, Meta(max_length=CONTENT_CHARS_MAX)]
    literal: bool
    sentences: Natural


class Claim(Fact, frozen=True, kw_only=True):
    """A path that the report names, and the page where it does first."""

    path: str
    page: Natural


class PdfReading(Fact, frozen=True, kw_only=True):
    """The reading of a PDF, never its whole text. ``sha256`` of the file. ``text_pages``: pages with text of their
    own, ``ocr_pages`` those read by recognition. ``claims``: paths that it names; ``statements``: sentences that claim
    something of this code, or explain it (``goal``: what, as in ``actors/audit/matters.py``; ``path``: the name or
    number that is claimed; ``line``: the page). ``sentences``: so many tell anything of this code. ``excerpts``: what
    was found for the rubric's questions."""

    sha256: str
    title: str
    pages: Natural
    text_pages: Natural
    ocr_pages: Natural
    characters: Natural
    segments: Natural
    tables: Natural
    headings: list[Heading]
    claims: list[Claim]
    statements: list[Finding]
    excerpts: list[Excerpt]
    notes: list[str] = []
    sentences: Natural = 0


class Picture(Fact, frozen=True, kw_only=True):
    """An image of the report: embedded, or a page (or part) with vector drawings, rendered as PNG. ``sha256`` names
    its blob; ``alike``: so many more pages show the same one. ``words``: text inside a drawing's area."""

    page: Natural
    kind: Literal["embedded", "drawing"]
    width: Natural
    height: Natural
    sha256: Annotated[str, blob()]
    media_type: str
    shapes: Natural = 0
    words: list[str] = []
    alike: Natural = 0


class PictureReading(Fact, frozen=True, kw_only=True):
    """The images of a PDF: at most those that a limit lets through; ``count`` says how many there are. ``missed``:
    images that were not had, and pages that could not be searched for them."""

    count: Natural
    pictures: list[Picture]
    notes: list[str] = []
    missed: Natural = 0
