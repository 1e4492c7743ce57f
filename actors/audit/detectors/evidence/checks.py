"""The statements of a report, each looked up in the facts about the code; pure.

There are kinds of checks, one after the other: each says that a statement is supported or contradicted, and where, or
nothing. A contradiction rests on facts about all of the code that was read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.evidence.passages import Passages
from pmagent.actors.audit.detectors.evidence.repo import absence, absence_of
from pmagent.actors.audit.matters import (
    LANGUAGES,
    MATTERS,
    MOODS,
    NAME,
    NUMBER,
    PRODUCT,
    STOP,
    TOLD,
    Matter,
    term,
    terms,
)
from pmagent.actors.audit.occasions import no_occasion
from pmagent.actors.oa.reasoning.rules.vocabulary import stem, words
from pmagent.contracts.audit_facts import CodePassage, Finding, RepoSurvey

STATEMENT_SURE: Final = 0.7
"""A passage was taken for a claim by its words."""
LOOKED_UP: Final = 0.65
"""An absence that is less sure than this contradicts nobody."""
_TITLE_WORD: Final = 3
_UNDECLARED: Final = ("state.undeclared", "graph.broken_route")
"""Goals of findings that quote a key of a state which is always empty."""
_DECLARES: Final = re.compile(r"\b(?:(?:declare|define|contain)[sd]?|lists|holds|held|listed)\b", re.IGNORECASE)
"""A sentence with one of these verbs says that something is there, not that it runs."""
_SHARE: Final = re.compile(r"\((\d+)%\)$")
_OF_ALL: Final = re.compile(r"\b(?:all|every|each|fully|completely|throughout)\b", re.IGNORECASE)
MOST: Final = 60
"""A sentence that says something of all is contradicted where it is true of a smaller share, in percent."""
_CANDID: Final = re.compile(r"\b(?:stubs?|constants?|placeholders?|mock\w*|dumm\w+|fixed|canned)\b", re.IGNORECASE)
"""A sentence with one of these says itself that nothing is done."""
_COUNTS: Final = re.compile(
    r"\b(?:counts?|decides?|enforced|applied|ranked|sorted|lists?|ordered|taken\s+into|weigh\w*|closed|leads?|triggers?"
    r"|rejected|acts?|repeated|regenerated|re-?(?:evaluat|judg|scor)ed)\b", re.IGNORECASE,
)  # fmt: skip
"""A sentence with one of these says that something has an effect."""
_CONDITION: Final = r"\b(?:after|when|once|if|until|unless|more\s+than|at\s+most|up\s+to|below|above)"
"""Words before a value on which something depends."""
_ANY: Final = frozenset((
    "result", "results", "data", "value", "values", "text", "item", "items", "output", "response", "answer", "line",
    "lines", "name", "report", "state", "message", "messages", "row", "rows",
))  # fmt: skip
"""Names under which code keeps anything: a sentence with the word need not be about this one."""
_OF_PLACES: Final = ("agent", "data", "justice.by_rule", "output", "tools")
"""Families of matters of which a sentence says where in the code they are."""
_SEVERAL: Final = re.compile("[;:]|,.*,")
"""A sentence with these may say several things of several places."""
_BY_USE: Final = ("justice", "judges", "output", "agent")
"""Families of goals that are met only by what runs and is used."""
_CHANCE: Final = 3
"""Numbers up to this stand in any code: of a time they count where code names its unit."""
_ON_TESTS: Final = re.compile(r"(?:\w+\s+){0,3}tests?\b", re.IGNORECASE)
"""A sentence that begins so says of tests how they are made, and of the program nothing."""
_UNREAD: Final = ("no code reads it", "is computed and never used")
_JOINED: Final = re.compile(r"[a-z]{2}_[a-z]{2}", re.IGNORECASE)
"""A name of several words."""


class Checked(NamedTuple):
    """A statement of the report, and what came of looking it up; ``by_word``: a word alone contradicts it, which does
    not count where anything else in its sentence holds."""

    statement: Finding
    outcome: Literal["supported", "contradicted", "open"]
    why: str = ""
    sure: float = STATEMENT_SURE
    by_word: bool = False


Answer = Checked | None
"""The answer of a kind of check to a statement; None: the next kind is asked."""
Kind = Callable[[Finding], Answer]


def _holds(statement: Finding, why: str) -> Checked:
    return Checked(statement, "supported", why)


def _denied(statement: Finding, why: str, sure: float = STATEMENT_SURE) -> Checked:
    return Checked(statement, "contradicted", why, sure)


class Facts:
    """The survey's facts, to look statements up in; ``missing``: paths that the report names and nobody finds."""

    def __init__(self, survey: RepoSurvey, missing: Sequence[str] = ()) -> None:
        self._survey = survey
        self._missing = missing
        self._used = set(survey.words.split()) if absence(survey) > LOOKED_UP else set[str]()
        self._idle = set(survey.idle_words.split())
        self._passages = Passages(survey, self._used)
        self._found: dict[str, Finding] = {}
        for one in survey.findings:
            if one.reached or one.goal == "security.secret":
                self._found.setdefault(one.goal, one)
        self._there = {one.goal for one in survey.findings}
        self._dead = [one for one in survey.findings if one.goal == "repo.idle"]
        self._lost = [one for one in survey.findings if one.goal == "outcome.unused" and one.reached]
        unused = {term(one.text.partition(" ")[0]) for one in survey.findings if one.goal == "outcome.unused"}
        self._useful = self._used - unused
        self._keys = [
            (_stems(key), one)
            for one in survey.findings if one.goal in _UNDECLARED and one.reached
            for key in re.findall(r"'(\w+)'", one.text)
        ]  # fmt: skip
        self._sure = STATEMENT_SURE * absence(survey)
        self._of_any: tuple[Kind, ...] = (self._path, self._of_dead, self._of_lost, self._of_key)
        self._of_matter: tuple[Kind, ...] = (
            self._in_tests, self._at_home, self._by_flaw, self._by_goal, self._by_use, self._by_words
        )  # fmt: skip
        self._others: dict[str, Kind] = {
            NAME: self._name, PRODUCT: self._product, NUMBER: self._number, TOLD: self._told
        }  # fmt: skip

    def checked(self, statement: Finding) -> Checked:
        """The statement, by the first kind of check that knows it."""
        other = [self._others[statement.goal]] if statement.goal in self._others and self._used else []
        of_goal = self._of_matter if statement.goal in MATTERS else other
        answers = (kind(statement) for kind in (*self._of_any, *of_goal))
        return next((one for one in answers if one is not None), Checked(statement, "open"))

    # --- of any statement ---

    def _path(self, statement: Finding) -> Answer:
        missing = next((path for path in self._missing if path in statement.text), "")
        return _denied(statement, f"there is no {missing}") if missing else None

    def _of_dead(self, statement: Finding) -> Answer:
        """A sentence that says of a function or node by its name that it does something, which nothing reaches."""
        said = f" {' '.join(_plain(statement.text))} "
        for one in self._dead:
            name = one.text.partition(": ")[0]
            parts = _plain(name)
            runs = term(name) in self._used and not one.text.endswith(("node", "the same"))
            if len(parts) > 1 and not runs and f" {' '.join(parts)} " in said and not _CANDID.search(statement.text):
                return _denied(statement, f"{one.text}, {one.path}:{one.line}")
        return None

    def _of_lost(self, statement: Finding) -> Answer:
        """A sentence that says of a result that it counts, or that all of it is kept, where it is lost."""
        said = set(_plain(statement.text))
        for one in self._lost:
            name = one.text.partition(" ")[0]
            names = {part for part in _plain(name) if len(part) > _TITLE_WORD} if name not in _ANY else set()
            counts = one.text.endswith(_UNREAD) and _COUNTS.search(statement.text)
            of_name = names and names <= said and counts
            paths = re.findall(r"[\w/-]+\.[a-z]{2,5}\b", one.text) if "overwrites" in one.text else []
            if of_name or (_OF_ALL.search(statement.text) and any(path in statement.text for path in paths)):
                return _denied(statement, f"{one.text.partition(chr(10))[0]}, {_place(one)}")
        return None

    def _of_key(self, statement: Finding) -> Answer:
        """A sentence on what happens by a key of the state that the state does not have."""
        for stems, one in self._keys:
            on = rf"{_CONDITION}\s+(?:[\w-]+\s+){{0,3}}{re.escape(stems[0])}" if stems else ""
            if on and re.search(on, statement.text, re.IGNORECASE):
                return _denied(statement, f"{one.text.partition(chr(10))[0]}, {_place(one)}")
        return None

    # --- of a matter ---

    def _in_tests(self, statement: Finding) -> Answer:
        matter = MATTERS[statement.goal]
        lost = self._passages.untested(statement.text, matter.words) if matter.scope == "tests" else ""
        return _denied(statement, f"no test knows of {lost}", self._sure) if lost else None

    def _at_home(self, statement: Finding) -> Answer:
        """By the code that the sentence belongs to, or by each part of the code that it speaks of."""
        matter = MATTERS[statement.goal]
        bare = None
        if matter.each and _OF_ALL.search(statement.text):
            bare = self._passages.without(matter.each, matter.words)
        elif matter.words and not _SEVERAL.search(statement.text) and matter.id.startswith(_OF_PLACES):
            bare = self._misplaced(statement, matter)
        if bare is None:
            return Checked(statement, "open") if matter.scope else None
        return _denied(statement, f"not so in {_at(bare)}", self._sure)

    def _misplaced(self, statement: Finding, matter: Matter) -> CodePassage | None:
        """The function that the sentence speaks of, where that does not do what is done elsewhere."""
        claim = terms(re.findall("[A-Za-z]+", " ".join(one.group() for one in matter.pattern.finditer(statement.text))))
        home = self._passages.home(statement.text, matter.words if matter.scope else matter.words | claim)
        if home is None:
            return None
        if matter.scope == "not home":
            return home.passage if home.code & matter.words else None
        around = self._passages.around(home)
        found = {one.path for one in self._survey.findings if one.reached and one.goal in matter.goals}
        near = any(one.code & matter.words for one in around) or found & {one.passage.path for one in around}
        return None if near else home.passage

    def _by_flaw(self, statement: Finding) -> Answer:
        matter = MATTERS[statement.goal]
        flaws = [self._found[goal] for goal in matter.flaws if goal in self._found]
        for one in flaws:
            near = not matter.near or self._passages.about(statement.text, one)
            sure = one.confidence >= LOOKED_UP or (matter.goals and self._found.keys().isdisjoint(matter.goals))
            if sure and near:
                return _denied(statement, f"{one.goal} at {_place(one)}", 0.8)
        if matter.denial:
            return _holds(statement, "no flaw that denies it was found") if self._used else Checked(statement, "open")
        return None

    def _by_goal(self, statement: Finding) -> Answer:
        for goal in MATTERS[statement.goal].goals:
            if goal in self._found:
                one = self._found[goal]
                share = _SHARE.search(one.text)
                rare = share is not None and int(share[1]) < MOST and _OF_ALL.search(statement.text)
                if rare or (one.confidence < LOOKED_UP and goal == "project.tests"):
                    return _denied(statement, f"{goal}: {one.text}")
                return _holds(statement, f"{goal} at {_place(one)}")
        return None

    def _by_use(self, statement: Finding) -> Answer:
        """By what is there and of no use."""
        matter = MATTERS[statement.goal]
        if _DECLARES.search(statement.text) and not self._there.isdisjoint(matter.goals):
            return _holds(statement, "it is there, though nothing that runs uses it")
        unused = [one for one in self._survey.findings if one.goal in matter.goals and not one.reached]
        if unused and unused[0].goal.startswith(_BY_USE):
            return _denied(statement, f"what there is at {_place(unused[0])} is not used")
        return None

    def _by_words(self, statement: Finding) -> Answer:
        """By the names that code has which does such a thing."""
        matter = MATTERS[statement.goal]
        if matter.words & self._useful:
            return _holds(statement, f"the code names {min(matter.words & self._useful)}")
        sure = min((absence_of(goal, self._survey) for goal in matter.goals), default=absence(self._survey))
        elsewhere = not matter.words and all(no_occasion(goal, self._survey.examined) for goal in matter.goals)
        idle = matter.words & self._idle
        vague = not idle and MOODS["praise"].search(statement.text)
        unlike = matter.against and not matter.against & self._used
        elsewhere = elsewhere or (not matter.scope and _ON_TESTS.match(statement.text) is not None)
        if sure < LOOKED_UP or elsewhere or vague or unlike or (matter.words and not self._used):
            return None
        why = f"only code that nothing reaches names {min(idle)}" if idle else "not found"
        return _denied(statement, why, STATEMENT_SURE * sure)

    # --- of names, products, numbers, and anything else ---

    def _name(self, statement: Finding) -> Answer:
        """A name is invented where its last part is in no code, though what it is said to be part of is; or a name of
        several words as a whole; or a function's, class's or option's."""
        name = statement.path.removesuffix("()").lstrip("-").replace("-", "_")
        around, _, last = name.rpartition(".")
        parts, known = terms([last]) - {""}, self._used | self._idle
        composed = last.isupper() and terms(last.split("_")) <= self._used  # settings are read with a prefix
        if term(last) in self._used or composed or (parts <= self._used and not _JOINED.search(last)):
            return _holds(statement, "the code has this name")
        if term(last) in self._idle:
            return _denied(statement, "only code that nothing reaches has this name", self._sure)
        ours = not around or term(around.rpartition(".")[2]) in known
        called = bool(around) or statement.path.endswith("()") or _JOINED.search(last)
        invented = ours and called and not last.startswith("test") and term(last) not in known
        return _denied(statement, "no code has this name", self._sure) if invented else None

    def _product(self, statement: Finding) -> Answer:
        called = LANGUAGES.get(statement.path.lower())
        if called is not None:
            known = not self._passages or called & self._passages.known.words
            return None if known else _denied(statement, "nothing here knows this language", self._sure)
        plain = "".join(letter for letter in statement.path.lower() if letter.isalnum())
        declared = self._idle if _DECLARES.search(statement.text) else set()
        if term(statement.path) in self._used | declared or any(one.startswith(plain[:9]) for one in self._used):
            return _holds(statement, "the code has this name")
        return _denied(statement, "no code that runs has this name", self._sure)

    def _number(self, statement: Finding) -> Checked:
        said, _, numbers = statement.path.rpartition(": ")
        large = [one for one in numbers.split() if float(one) > _CHANCE or float(one) % 1]
        in_unit = term(said.split()[-1]) in self._used or term(f"{said.split()[-1].rstrip('s')}s") in self._used
        held = [one for one in (numbers.split() if in_unit or not large else large) if one in self._used]
        if held:
            return _holds(statement, f"the code holds {held[0]}")
        return _denied(statement, "no code that runs holds this number", self._sure)

    def _told(self, statement: Finding) -> Answer:
        """A sentence that belongs to code which nothing reaches, or speaks of what the repository does not know."""
        unlike = _CANDID.search(statement.text) or MOODS["praise"].search(statement.text)
        if not self._passages or not statement.path or unlike:
            return None
        home = None if _DECLARES.search(statement.text) else self._passages.idle(statement.text)
        if home is not None:
            return _denied(statement, f"nothing reaches {_at(home)}", self._sure)
        unknown = self._passages.unknown(statement.path.split(), statement.text)
        why = f"nothing here knows of {unknown}"
        return Checked(statement, "contradicted", why, self._sure, by_word=True) if unknown else None


def _plain(text: str) -> list[str]:
    """The stems of a text's words, in their order; a name of several words is several."""
    return [stem(part) for word in text.split() for part in words(word)]


def _stems(name: str) -> list[str]:
    return [part for part in _plain(name) if part not in STOP]


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}" if finding.line else finding.path


def _at(passage: CodePassage) -> str:
    return f"{passage.name} at {passage.path}:{passage.line}"
