"""Passages of a report that claim a feature, by the goal (``actors/audit/goals.py``) that the code would have to show;
pure.

What is claimed stands in running text as something that is so (``assertion``); headings, plans, negations, requirements
and questions claim nothing. Which words claim which goal is the table below: narrower than the words by which a rubric
means a goal, since a claim that the code does not bear out is held against the report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from pmagent.actors.audit.sources.pdf.assertion import aside, asserted
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.words import STOP_WORDS, clipped, sentences, words
from pmagent.contracts.audit_facts import Finding

EACH_MAX: Final = 5
"""So many statements are kept of each goal."""
TEXT_CHARS: Final = 400
SENTENCE_CHARS: Final = 2_000
_CONFIDENCE: Final = 0.8
_WORDS_MIN: Final = 4

_CLAIMS: Final = {
    "graph.builder": r"state\s?graph|langgraph",
    "graph.fan_out": (
        r"in\s+parallel|parallel\s+(?:branch|node|judge|detective|execution|agent|fan)\w*|concurrently"
        r"|fan(?:s|ned|ning)?[\s-]*out|paralleli[sz](?:es|ed|ation)"
    ),
    "graph.fan_in": (
        r"fan(?:s|ned|ning)?[\s-]*in|synchroni[sz]ation\s+(?:node|point|barrier)|aggregator\s+node"
        r"|joins?\s+the\s+branches"
    ),
    "graph.conditional": r"conditional\s+(?:edge|rout|branch)\w*|add_conditional_edges",
    "graph.error_route": (
        r"(?:conditional|rout)\w*\b[^.]{0,80}\b(?:error|fail|missing|degraded)\w*"
        r"|(?:error|failure|degraded)\s+(?:edge|route|path|branch|node)\w*"
        r"|(?:error|fail|missing)\w*\b[^.]{0,60}\bconditional\s+(?:edge|rout)\w*"
    ),
    "state.typed": r"typed\s?dicts?|typed\s+(?:graph\s+)?state",
    "state.models": r"pydantic|basemodels?",
    "state.reducers": r"reducers?|operator\.(?:add|ior|or_)",
    "tools.temporary_clone": r"sandbox(?:ed|ing)?|temporary\s*director(?:y|ies)|tempfile|throwaway\s+director\w+",
    "tools.checked_processes": r"subprocess\.run|subprocess\b[^.]{0,60}\b(?:return\s*code|check|stderr)\w*",
    "tools.time_limits": r"time-?\s?outs?|time\s+limits?",
    "tools.inputs_checked": (
        r"(?:urls?|paths?|inputs?)\b[^.]{0,40}\b(?:saniti[sz]ed|validated|checked)"
        r"|(?:saniti[sz]es?|validates?)\s+(?:the\s+|all\s+|every\s+)?(?:\w+\s+)?(?:urls?|paths?|inputs?)"
    ),
    "output.structured": r"with_structured_output|structured\s+(?:output|json|response)s?|bind_tools|response_format",
    "output.validated": (
        r"validat\w+\b[^.]{0,60}\b(?:pydantic|schema|model)\w*"
        r"|(?:answers?|outputs?|responses?|opinions?)\b[^.]{0,40}\bvalidated"
    ),
    "output.retried": r"retr(?:y|ies|ied|ying)|asked\s+again",
    "judges.personas": r"personas?|prosecutor",
    "judges.distinct": (
        r"(?:distinct|conflicting|separate|different)\s+(?:\w+\s+)?(?:personas?|(?:system\s+)?prompts?|philosoph\w+)"
    ),
    "justice.deterministic": (
        r"deterministic(?:ally)?|without\s+(?:an?\s+|any\s+)?(?:llm|model)|hard-?coded\s+(?:rules?|logic)"
    ),
    "justice.rules": r"security\s+override|fact\s+supremacy|rule\s+of\s+(?:security|evidence|functionality)",
    "justice.variance": r"variance|re-?evaluat\w+",
    "justice.dissent": r"dissent\w*",
    "justice.report_file": r"markdown\s+(?:report|file|document)|report\b[^.]{0,40}\bmarkdown",
    "project.tests": (
        r"(?:unit|integration|property|end-to-end)[\s-]+tests?|test\s+(?:suite|coverage)|pytest"
        r"|tests?\s+(?:cover|pass|run)\w*"
    ),
    "project.ci": r"continuous\s+integration|github\s+actions|ci\s+(?:pipeline|workflow|run)s?",
    "project.lock": r"lock\s?files?|(?:uv|poetry)\.lock",
    "project.types": r"type\s+(?:annotations?|hints?)|fully\s+typed",
    "project.lint": r"linters?|lint(?:ed|ing)|ruff|mypy|pyright|flake8",
    "agent.limits": r"(?:token|step|cost|recursion)[\s_](?:limit|budget)s?",
    "agent.approval": r"human[\s-]in[\s-]the[\s-]loop|human\s+approv\w+|person\s+approves",
    "agent.persistence": r"checkpoint(?:er|ers|s|ed|ing)?|resum(?:e|es|ed)\s+(?:after|from)",
}
_PATTERNS: Final = {goal: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for goal, pattern in _CLAIMS.items()}


def statements(passages: Iterable[Paragraph]) -> list[Finding]:
    """The statements of the passages, in the order of goals above, then of the report: ``path`` is empty, ``line`` the
    page."""
    kept: dict[str, list[Finding]] = {goal: [] for goal in _PATTERNS}
    seen: Counter[tuple[str, str]] = Counter()
    for passage in passages:
        if passage.level or passage.code or aside(passage.heading, *passage.above):
            continue
        for sentence in sentences(passage.text):
            if len(sentence) > SENTENCE_CHARS or not _is_sentence(sentence):
                continue
            for goal in claimed(sentence):
                seen[goal, sentence] += 1
                if seen[goal, sentence] == 1 and len(kept[goal]) < EACH_MAX:
                    text = clipped(sentence, TEXT_CHARS)
                    kept[goal].append(Finding(goal=goal, path="", line=passage.page, text=text, confidence=_CONFIDENCE))
    return [finding for found in kept.values() for finding in found]


def _is_sentence(text: str) -> bool:
    """Whether it is more than a cell of a table, or a title."""
    said = words(text)
    return len(said) >= _WORDS_MIN and any(word in STOP_WORDS for word in said)


def claimed(sentence: str) -> list[str]:
    """The goals of which the sentence says that they are reached."""
    return [
        goal
        for goal, pattern in _PATTERNS.items()
        if any(asserted(sentence, *found.span()) for found in pattern.finditer(sentence))
    ]
