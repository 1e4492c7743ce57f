"""The meaning of a dimension's texts: the goals whose words they use, and the terms that they quote; pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.goals import GOALS, Goal

TERMS_MAX: Final = 40
TERM_CHARS_MAX: Final = 80
TERM_WORDS_MAX: Final = 4
BEFORE_CHARS: Final = 200
"""So much of the text before a quotation says what it is meant for."""

FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "github_repo": (
        "history", "state", "graph", "tools", "security", "output", "judges", "justice", "project", "agent",
        "outcome",
    ),
    "pdf_report": ("report",),
    "pdf_images": ("images",),
}  # fmt: skip
"""Whose goals, by the first part of their id, are looked for in which artifact."""

TERM_GOALS: Final[dict[str, str]] = {"github_repo": "repo.term", "pdf_report": "report.term"}
"""The goal of a quoted term."""
_ALWAYS: Final[dict[str, tuple[str, ...]]] = {"pdf_images": ("images.present", "images.inspected")}
"""The goals that are looked for in any case: without them there is nothing to look at."""

_QUOTED: Final = re.compile(
    r"(?<![\w'\x80-\U0010ffff])'([^'\n]+)'(?!\w)"  # an apostrophe behind a letter opens nothing
    r'|(?<!\w)"([^"\n]+)"'
    r"|`([^`\n]+)`|\u2018([^\u2018\u2019\n]+)\u2019(?!\w)|\u201c([^\u201c\u201d\n]+)\u201d",
    re.ASCII,
)
_LETTER: Final = (
    r"\w\x80-\U0010ffff"  # beyond ASCII anything may be a letter: which ones are is Python's version's business
)
_CALL: Final = re.compile(r"\([^()]*\)\Z")
_LABEL: Final = re.compile(r"\bas\s*\Z", re.IGNORECASE | re.ASCII)
_DENIED: Final = re.compile(
    r"\b(?:no|not|never|without|raw|single|instead of)(?:\s+\w+)?\s*\Z", re.IGNORECASE | re.ASCII
)
_EXAMPLE: Final = re.compile(r"\b(?:e\.\s?g\.|for example|for instance)[^()]*\Z", re.IGNORECASE | re.ASCII)
_SPEECH: Final = re.compile(r"(?:We|I|Our|This|The)\s")
_CODE: Final = re.compile(r"[A-Za-z_./][A-Za-z0-9_./*-]*\Z")


def means(text: str, goal: Goal) -> bool:
    """Whether the text has a word of the goal, at word boundaries."""
    return bool(said(text, goal))


def said(text: str, goal: Goal) -> list[str]:
    """The words of the goal that the text has, at word boundaries."""
    small = lowered(text)
    return [word for word in goal.words if word in small and _word(word).search(small)]


def derived(target: str, texts: tuple[str, ...], terms: tuple[str, ...], name: str = "") -> tuple[str, ...]:
    """The goals that the texts mean, of those that fit the artifact, in the order of the catalogue. Of a repository
    these are the goals of what the dimension is about: of the topics that its name and texts have most words of, those
    that they mean, and those without which nothing can be said of the topic."""
    whole = "\n".join(texts)
    wanted = set(_ALWAYS.get(target, ()))
    if terms and target in TERM_GOALS:
        wanted.add(TERM_GOALS[target])
    meant = [goal for goal in GOALS.values() if goal.id.partition(".")[0] in FAMILIES[target] and means(whole, goal)]
    if target == "github_repo":
        about = _topics(meant, whole, name)
        meant = [goal for goal in meant if any(goal.id.partition(".")[0] in TOPICS[one].families for one in about)]
        wanted.update(goal for one in about for goal in TOPICS[one].always)
    wanted.update(goal.id for goal in meant)
    wanted.update(flaw for goal, flaw in _BESIDE.items() if goal in wanted)
    return tuple(goal for goal in GOALS if goal in wanted)


class Topic(NamedTuple):
    """The topic of a criterion: the families of its goals, what criteria on it are called, and the goals without which
    nothing can be said of it."""

    families: tuple[str, ...]
    called: tuple[str, ...]
    always: tuple[str, ...] = ()


_UNSAFE: Final = tuple(goal.id for goal in GOALS.values() if goal.security)
TOPICS: Final[dict[str, Topic]] = {
    "history": Topic(
        ("history",), ("history", "commits", "git"),
        ("history.commits", "history.spread", "history.bulk", "history.coarse"),
    ),
    "state": Topic(
        ("state",), ("state", "reducers", "reducer"),
        ("state.typed", "state.reducers", "state.plain_dicts", "state.undeclared", "state.parallel_writes"),
    ),
    "graph": Topic(
        ("graph",), ("graph", "orchestration", "workflow", "flow", "topology"),
        ("graph.builder", "graph.error_route", "graph.run", "graph.idle", "graph.dead_nodes", "graph.no_end",
         "graph.broken_route", "graph.empty_nodes", "graph.hollow"),
    ),
    "tools": Topic(
        ("tools", "security"), ("tools", "tool", "safe", "safety", "security", "sandboxing"),
        ("tools.checked_processes", "tools.time_limits", "tools.errors_handled", "tools.inputs_checked",
         "tools.no_unsafe_calls", *_UNSAFE),
    ),
    "output": Topic(
        ("output",), ("structured output", "structured answers", "structured", "output", "answers"),
        ("output.structured", "output.validated", "output.retried", "output.freeform", "output.unused_schema"),
    ),
    "judges": Topic(
        ("judges",), ("judicial nuance", "nuance", "personas", "judges", "difference of the judges", "dialectic"),
        ("judges.personas", "judges.distinct", "judges.parallel", "judges.collusion", "judges.in_sequence"),
    ),
    "justice": Topic(
        ("justice",), ("chief justice", "justice", "ruling", "verdict", "synthesis", "final score"),
        ("justice.deterministic", "justice.rules", "justice.facts", "justice.variance", "justice.dissent",
         "justice.report_file", "justice.model_decides", "justice.without_effect",
         "justice.constant"),
    ),
    "agent": Topic(
        ("agent",), ("approval", "limits", "persistence", "guardrails"),
        ("agent.limits", "agent.endless", "agent.approval", "agent.persistence"),
    ),
    "outcome": Topic(
        ("outcome",), ("outcome", "result", "results", "delivery"),
        ("outcome.delivered", "outcome.unused", "outcome.constant"),
    ),
    "project": Topic(("project",), ("tests", "typed", "errors", "handover", "documentation", "engineering", "quality")),
}  # fmt: skip
_BESIDE: Final = {"project.errors_told": "project.swallowed", "project.tests": "project.untested"}
"""Flaws that are looked for wherever their opposite is, whatever the words of the rubric."""
_CALLED: Final = 6
"""So many words of its texts the name of a dimension outweighs."""


def _topics(meant: Sequence[Goal], whole: str, name: str) -> list[str]:
    """The topics that a dimension has most to say of: at least two thirds as much as of the first of them."""
    spoken: dict[str, int] = {}
    for topic, one in TOPICS.items():
        of_texts = sum(len(said(whole, goal)) for goal in meant if goal.id.partition(".")[0] in one.families)
        of_name = _CALLED * any(names(name, word) for word in one.called)
        spoken[topic] = of_texts + of_name
    most = max(spoken.values())
    return [topic for topic, count in spoken.items() if count and 3 * count >= 2 * most]


def quoted(target: str, instruction: str, success: str, failure: str) -> tuple[str, ...]:
    """The names, paths and phrases that the instruction and the success pattern quote, each once, as they first occur:
    of a repository what can be a name or path in code, of a report phrases. Left out are what they tell to be absent,
    labels for what is wrong (flag … as 'x'), examples of sentences, and what only the failure pattern quotes."""
    bad = set(_quotes(failure))
    good = set(_quotes(success))
    found: dict[str, None] = {}
    for term in (*_quotes(instruction), *_quotes(success)):
        if term in bad and term not in good:
            continue
        if _fits(target, term) and not _flawed(term):
            found[term] = None
    return tuple(found)[:TERMS_MAX]


def names(text: str, term: str) -> bool:
    """Whether the text holds the term, as quoted or plain, at word boundaries."""
    return bool(term) and _word(lowered(term)).search(lowered(text)) is not None


def _quotes(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        before = text[max(0, match.start() - BEFORE_CHARS) : match.start()]
        term = next(group for group in match.groups() if group is not None)
        term = _CALL.sub("", term.strip()).strip().lstrip(".")
        if any(unmeant.search(before) for unmeant in (_LABEL, _DENIED, _EXAMPLE)) or _SPEECH.match(term):
            continue
        if term and len(term) <= TERM_CHARS_MAX:
            yield term


def _fits(target: str, term: str) -> bool:
    if target == "github_repo":
        return _CODE.match(term) is not None
    return len(term.split()) <= TERM_WORDS_MAX


def _flawed(term: str) -> bool:
    """Whether the term names what is a flaw where it is found."""
    return any(goal.kind == "flaw" and goal.security and means(term, goal) for goal in GOALS.values())


def lowered(text: str) -> str:
    """In ASCII alone: what else has cases depends on the version of Unicode that Python knows."""
    return text.translate(_LOWER)


_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@functools.lru_cache(maxsize=1024)
def _word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![{_LETTER}/-]){re.escape(word)}(?![{_LETTER}/-]|\.\w)", re.ASCII)
