"""Whether a passage says that something is so, or only that it is not, should be, or will be; pure."""

from __future__ import annotations

import re
from typing import Final


def _any(*patterns: str) -> re.Pattern[str]:
    """Any of these, as whole words, in any case."""
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_PLANNED: Final = _any(
    r"plan(?:s|ned|ning)?\s+(?:to|for|on)|planned|intend(?:s|ed)?|hopes?\s+to|aims?\s+to|going\s+to|yet\s+to",
    r"to\s+be\s+(?:done|added|built|implemented|written|decided)|remains?\s+to|not\s+yet|to-do|todo|tbd|roadmap",
    r"next\s+(?:steps?|version|iteration|phase)|in\s+(?:the\s+)?future|future\s+(?:work|version|plans?)",
    r"later\s+(?:version|phase|iteration)s?|propos(?:es?|ed|als?)|if\s+(?:we|there|time|the\s+budget)",
    r"rubric\s+(?:asks|wants|says|demands|expects|calls|requires)|some\s+day",
)
"""Said anywhere in a sentence."""
_WISHED: Final = _any(r"will|would|shall|should|could|might|may|must|require[sd]?|requirements?")
"""Said anywhere in its clause."""
_DENIED: Final = _any(
    r"not(?!\s+(?:only|just|merely|simply|sequential|linear))|no(?!\s+(?:longer|doubt))|never|none|nor|neither|without",
    r"lack(?:s|ed|ing)?|cannot|absence|fail(?:s|ed)?\s+to|instead\s+of|rather\s+than|drop(?:ped|s)?|remov(?:e|es|ed|ing)",
    r"deleted?|skip(?:ped|s)?|avoid(?:s|ed)?|abandon(?:ed|s)?|reject(?:ed|s|ing)?|defer(?:red|s)?|omit(?:ted|s)?|unlike",
    r"replac(?:es?|ed|ing)(?!.*\b(?:with|by)\b)|\w+n['\u2019]t(?!\s+(?:only|just|merely|simply))",
)
"""Said before it in its clause."""
_TAKEN_BACK: Final = _any(
    r"(?:is|are|was|were|be|been|do|does|did|has|have|had|can|could)\s+(?:still\s+|currently\s+)?not|\w+n['\u2019]t|cannot",
    r"not\s+(?:there|supported|used|done|implemented)|nowhere",
    r"(?:is|are|was|were|been|got)\s+(?:\w+\s+)?(?:absent|missing|lacking|dropped|removed|deleted|skipped|abandoned)",
    r"(?:is|are|was|were|been|got)\s+(?:\w+\s+)?(?:rejected|deferred|omitted|replaced|disabled)",
)
"""Said after it in its clause."""
_CLAUSE: Final = re.compile(
    r"\s*(?:[;:()\u2013\u2014,]|\s-\s)\s*"
    r"|\s+(?=(?:but|while|whereas|although|though|however|because|so\s+that|which|who)\b)"
    r"|\s+(?=and\s+(?:then|they|it|we|the|each|all|both|this|these|do|does|did|is|are|can|cannot|never|no|not)\b)",
    re.IGNORECASE,
)
_ASIDE: Final = _any(
    r"future|roadmap|next\s+steps?|plan(?:s|ned)|limitations?|known\s+(?:gaps?|issues?|limits?|weaknesses)|gaps?|to-do|todo",
    r"backlog|open\s+(?:questions?|issues?|points?)|alternatives?|rejected|remediation|related\s+work|improvements?",
    r"not\s+(?:done|implemented)|what\s+is\s+missing|remaining|outlook|out\s+of\s+scope|trade-?offs?|references|bibliography",
)


def aside(*headings: str) -> bool:
    """Whether what stands under these headings is said of something that is not there: plans, gaps, alternatives."""
    return any(_ASIDE.search(heading) for heading in headings)


def asserted(sentence: str, start: int, end: int) -> bool:
    """Whether ``sentence`` says of what stands at ``start`` to ``end`` that it is so: it is no question, speaks nowhere
    of plans, and its clause neither wishes or denies it before nor takes it back after. In doubt it is not."""
    if sentence.rstrip().endswith("?") or _PLANNED.search(sentence[:start]) or _PLANNED.search(sentence[end:]):
        return False
    first, last = 0, len(sentence)
    for border in _CLAUSE.finditer(sentence):
        if border.end() <= start:
            first = border.end()
        elif border.start() >= end:
            last = border.start()
            break
    before, after = sentence[first:start], sentence[end:last]
    if _WISHED.search(before) or _WISHED.search(after):
        return False
    return not _DENIED.search(before) and not _TAKEN_BACK.search(after)
