"""Whether a passage says that something is so, or only that it is not, should be, or will be; pure."""

from __future__ import annotations

import re
from typing import Final

_PLANNED: Final = re.compile(
    r"\b(?:will|would|shall|should|could|might|may|must|plan(?:s|ned|ning)?\s+(?:to|for|on)|planned|intend(?:s|ed)?|hope(?:s)?\s+to"
    r"|aims?\s+to|going\s+to|to\s+be\s+(?:done|added|built|implemented|written|decided)|next\s+(?:steps?|version|iteration|phase)"
    r"|in\s+(?:the\s+)?future|future\s+(?:work|version|plans?)|later\s+(?:version|phase|iteration)s?|roadmap|to-?do|tbd|not\s+yet|yet\s+to"
    r"|proposed?|proposals?|require[sd]?|requirements?|rubric|remain(?:s|ing)?|missing|if|unless|instead\s+of\s+having|once)\b",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(
    r"\b(?:not(?!\s+(?:only|just|merely|simply))|no(?!\s+(?:longer|doubt))|never|none|nor|neither|without|lacks?|lacking|lacked|cannot"
    r"|absent|absence|fail(?:s|ed)?\s+to|instead\s+of|rather\s+than|drop(?:ped|s)?|remove[sd]?|deleted?|skipp?(?:ed|s)?|avoid(?:s|ed)?"
    r"|abandon(?:ed|s)?|reject(?:ed|s)?|rejecting|replaced|defer(?:red|s)?|omit(?:ted|s)?|unlike)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"\s*(?:[;:()\u2013\u2014]|,|\s-\s)\s*|\s+(?=(?:but|while|whereas|although|though|however|because|so\s+that|which|and\s+then)\b)",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\b(?:future|roadmap|next\s+steps?|planned|plans?|limitations?|known\s+(?:gaps?|issues?|limits?|weaknesses)|gaps?|to-?do|backlog"
    r"|open\s+(?:questions?|issues?|points?)|alternatives?|rejected|remediation|related\s+work|not\s+(?:done|implemented)|improvements?"
    r"|what\s+is\s+missing|remaining|outlook|out\s+of\s+scope|trade-?offs?|references|bibliography)\b",
    re.IGNORECASE,
)


def aside(heading: str) -> bool:
    """Whether what stands under ``heading`` is said of something that is not there: plans, gaps, alternatives."""
    return bool(_ASIDE.search(heading))


def asserted(sentence: str, start: int, end: int) -> bool:
    """Whether ``sentence`` says of what stands at ``start`` to ``end`` that it is so: it is no question, speaks nowhere
    of plans or requirements, and what it says in that clause is not negated. In doubt it is not."""
    if sentence.rstrip().endswith("?") or _PLANNED.search(sentence[:start] + " " * (end - start) + sentence[end:]):
        return False
    first, last = 0, len(sentence)
    for border in _CLAUSE.finditer(sentence):
        if border.end() <= start:
            first = border.end()
        elif border.start() >= end:
            last = border.start()
            break
    clause = sentence[first:start] + " " * (end - start) + sentence[end:last]
    return not _NEGATED.search(clause)
