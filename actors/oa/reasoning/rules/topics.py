"""What a goal does, told from what it only speaks about; pure.

"Document how to drop a table" drops nothing: the act is the text, the table its topic. A clause is about a topic when
it begins with a word that tells or looks ("review the migration plan"), or makes a text and then says about what
("write a section on how to …"). Doing is never taken for a topic: behind a comma or a stop a clause begins anew, behind
"and" or "then" a verb does again, and so it does where it says what the looking is for ("read the log to delete it").
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pmagent.actors.oa.reasoning.rules.text import asserted, clauses, stem, stems

_LOOKING = stems(
    "list read inspect compare comparison inventory investigate investigation overview show print look count"
)
_TELLING = stems(
    "document describe description explain explanation outline summarise summarize summary sketch draft report"
    " postmortem walkthrough teach train demonstrate"
)
"""Work that looks, and work that puts something in words."""
_JUDGING = stems("review analyse analyze analysis study examine audit")
_RECORDS = stems(
    "plan log report history record ticket incident note diff proposal script document doc result metric statistic"
    " failed failure past last previous policy"
)
"""Work that judges looks at a record of something ("review the migration plan"); without one, what it judges is what is
asked ("review the migration": may it be made?)."""
_WRITTEN = stems("document draft postmortem")
"""Those that are no answer, but something that is kept."""
_AUTHORING = stems("write add create edit improve extend prepare author compose update")
_TEXT = stems(
    "section page paragraph chapter guide document docs documentation note mortem postmortem comment runbook handbook"
    " readme description article tutorial glossary faq explanation summary overview report memo point slide"
    " presentation agenda proposal question"
)
_ABOUT = frozenset(("about", "on", "how", "why", "of", "for", "that", "what", "when", "whether", "describing"))
_PLACES = frozenset(("in", "into", "to", "under"))
_DOING = stems(
    "run execute apply perform trigger do proceed carry deploy release rollout publish ship launch migrate backfill"
    " delete remove drop purge wipe erase truncate destroy overwrite reset prune push force merge rebase commit install"
    " upgrade uninstall restart reboot stop kill shutdown terminate bypass skip disable override ignore circumvent mute"
    " suppress insert update upsert modify change alter edit write save rename move replace switch create add build"
    " implement enable upload download rotate revoke grant"
)
_AGAIN = frozenset(("and", "or", "then", "while", "by", "before", "after", "plus", "also", "afterwards", "next"))
_HOW = frozenset(("how", "when", "where", "what", "whether", "why", "way", "ways", "steps", "plan", "plans"))
_SUBJECTS = frozenset(("i", "you", "we", "they", "lets", "can", "will", "must", "should", "shall", "may"))
"""Whoever does something: "so that we can drop it" is no topic, "how we drop it" is one."""
_EXECUTING = stems("run execute apply perform do carry proceed trigger start")
_REFERRING = frozenset(("it", "them", "that", "this", "these", "those", "so"))
_ARTICLES = frozenset(("a", "an", "the", "our", "this", "these", "any", "all", "it", "just", "now", "finally"))

_NOUNS = stems(
    "deployment migration database db table column index schema guard backup release rollback rollout deletion"
)
_TEXT_NAMES = stems(
    "doc docs documentation guide page handbook manual readme diagram note article tutorial runbook faq glossary report"
    " description incident history policy"
)
_PAIRS = frozenset(
    (stem(one), stem(other))
    for one, other in (("push", "notification"), ("push", "message"), ("release", "note"), ("table", "contents"))
)
_NAMERS = stems("drop truncate alter delete purge wipe empty from into")
"""Behind one of these a name follows what it is the name of: "drop table notes"."""

_JOINED = {
    ("roll", "out"): "rollout",
    ("cut", "over"): "cutover",
    ("fail", "over"): "failover",
    ("shut", "down"): "shutdown",
}
"""Verbs of two words."""

LEAD = 2
"""So many words may stand before the word that tells: "a careful review of …"."""
REACH = 4


def done(goal: str, orders: Iterable[str], act: str = "") -> list[str]:
    """The words of what ``goal`` does: those that it asserts (``orders``: see there), without its topics.

    ``act`` is added for a clause whose outcome is kept as a text, where that counts as something ("write").
    """
    verbs = frozenset(orders)
    said: list[str] = []
    parts = [_joined(asserted(clause, verbs)) for clause in clauses(_spelt(goal))]
    is_ordered = any(_is_ordered(each) for each in parts)
    for each in parts:
        start = None if is_ordered else _topic(each)
        if start is None or _does(each[start:]):
            said += _headed(each)
            continue
        said += each[:start]
        is_kept = bool({stem(word) for word in each[:start]} & _WRITTEN) or _is_placed(each[start:])
        said += [act] if act and is_kept else []
    return said


def _spelt(goal: str) -> str:
    """The goal with its signs for "and" as a word."""
    return goal.replace("&", " and ").replace("+", " and ")


def _is_ordered(said: list[str]) -> bool:
    """Whether a clause orders what another one speaks of ("… , then perform it")."""
    return any(
        stem(word) in _EXECUTING and set(said[at + 1 : at + 3]) & _REFERRING for at, word in enumerate(said[: LEAD + 1])
    )


def _joined(said: list[str]) -> list[str]:
    """The words with verbs of two words as one."""
    joined: list[str] = []
    for word in said:
        both = _JOINED.get((stem(joined[-1]), word)) if joined else None
        joined[-1:] = [both] if both else [*joined[-1:], word]
    return joined


def _headed(said: list[str]) -> list[str]:
    """The words without those that only tell which text, or which message, is meant: of "migration guide", "guide"."""
    kept = []
    for at, word in enumerate(said):
        behind = [stem(one) for one in said[at + 1 : at + 3] if one != "of"][:1]
        cut, before = stem(word), stem(said[at - 1]) if at else ""
        is_name = cut in _NOUNS and at > 0 and before not in _NAMERS and set(behind) & _TEXT_NAMES
        if not is_name and (cut, *behind) not in _PAIRS:
            kept.append(word)
    return kept


def looks_only(goal: str) -> bool:
    """Whether every clause of ``goal`` looks at something, and does nothing else."""
    found = False
    for clause in clauses(_spelt(goal)):
        each = asserted(clause)
        start = _topic(each)
        if start is None:
            if {stem(word) for word in each} & _DOING:
                return False
            continue
        topic = each[start:]
        if _does(topic) or _is_placed(topic) or not {stem(word) for word in each[:start]} & (_LOOKING | _JUDGING):
            return False
        found = True
    return found


def _topic(said: list[str]) -> int | None:
    """Where the clause's topic begins; None when it has none."""
    how = next((at for at, pair in enumerate(pairwise(said)) if pair == ("how", "to")), None)
    for at, word in enumerate(said[: LEAD + 1]):
        cut = stem(word)
        if cut in _JUDGING and {stem(one) for one in said[at + 1 : at + 2 + REACH]} & _RECORDS:
            return at + 1
        if cut in _AUTHORING and (start := _behind_text(said, at + 1)) is not None:
            return start
        if cut in _LOOKING or cut in _TELLING:
            return at + 1
        if cut in _DOING:
            break
    return how


def _behind_text(said: list[str], at: int) -> int | None:
    """Where the topic begins of the text that is named shortly behind ``at``."""
    for number in range(at, min(at + REACH, len(said))):
        if stem(said[number]) in _TEXT:
            behind = range(number + 1, min(number + REACH, len(said)))
            return next((place + 1 for place in behind if said[place] in _ABOUT), None)
    return None


def _does(topic: list[str]) -> bool:
    """Whether a verb within the topic does something after all."""
    for at, word in enumerate(topic):
        if stem(word) not in _DOING:
            continue
        before = [one for one in topic[max(0, at - 2 * REACH) : at] if one not in _ARTICLES]
        if set(before[-2:]) & _AGAIN:
            return True
        is_meant = before[-1:] == ["to"] or set(before[-2:]) & _SUBJECTS
        if is_meant and not set(before[-REACH:]) & _HOW:
            return True
    return False


def _is_placed(topic: list[str]) -> bool:
    """Whether the topic ends in a place where a text is kept: "… into docs/db.md"."""
    return any(
        word in _PLACES and {stem(one) for one in topic[at + 1 : at + 1 + REACH]} & _KEPT
        for at, word in enumerate(topic)
    )


_KEPT = stems("docs doc md rst readme wiki handbook runbook changelog")
