"""The statements of a report, each looked up in the facts about the code; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.evidence.passages import Passages
from pmagent.actors.audit.detectors.evidence.repo import absence, absence_of
from pmagent.actors.audit.matters import LANGUAGES, MATTERS, MOODS, NAME, NUMBER, PRODUCT, STOP, TOLD, Matter, term, terms
from pmagent.actors.audit.occasions import no_occasion
from pmagent.actors.oa.reasoning.rules.vocabulary import stem, words
from pmagent.contracts.audit_facts import Finding, RepoSurvey

STATEMENT_SURE: Final = 0.7
"""A passage was taken for a claim by its words."""
LOOKED_UP: Final = 0.65
"""An absence that is less sure than this contradicts nobody."""
_TITLE_WORD: Final = 3
_DECLARES: Final = re.compile(r"\b(?:declare|define|contain|list|hold)(?:s|d)?\b", re.IGNORECASE)
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
_RECORDED: Final = re.compile(r"\b(?:computed|calculated|recorded|stored|noted)\b", re.IGNORECASE)
"""Words about a value that nothing uses which are true all the same."""
_ANY: Final = frozenset((
    "result", "results", "data", "value", "values", "text", "item", "items", "output", "response", "answer", "line",
    "lines", "name", "report", "state", "message", "messages", "row", "rows",
))  # fmt: skip
"""Names under which code keeps anything: a sentence with the word need not be about this one."""
_BY_USE: Final = ("justice", "judges", "output", "agent")
"""Families of goals that are met only by what runs and is used."""
_CHANCE: Final = 3
"""Numbers up to this stand in any code: of a time they count where code names its unit."""
_UNREAD: Final = ("no code reads it", "is computed and never used")
_JOINED: Final = re.compile(r"[a-z]{2}_[a-z]{2}", re.IGNORECASE)
"""A name of several words."""


class Checked(NamedTuple):
    """A statement of the report, and what came of looking it up."""

    statement: Finding
    outcome: Literal["supported", "contradicted", "open"]
    why: str = ""
    sure: float = STATEMENT_SURE


def _holds(statement: Finding, why: str) -> Checked:
    return Checked(statement, "supported", why)


def _denied(statement: Finding, why: str, sure: float = STATEMENT_SURE) -> Checked:
    return Checked(statement, "contradicted", why, sure)


def _open(statement: Finding) -> Checked:
    return Checked(statement, "open")


class Facts:
    """The survey's facts, to look statements up in; ``missing``: paths that the report names and nobody finds."""

    def __init__(self, survey: RepoSurvey, missing: Sequence[str] = ()) -> None:
        self._survey = survey
        self._missing = missing
        self._used = set(survey.words.split()) if absence(survey) > LOOKED_UP else set[str]()
        self._idle = set(survey.idle_words.split())
        self._found: dict[str, Finding] = {}
        for one in survey.findings:
            if one.reached or one.goal == "security.secret":
                self._found.setdefault(one.goal, one)
        self._there = {one.goal for one in survey.findings}
        self._passages = Passages(survey, self._used)
        keys = [one for one in survey.findings if one.goal in ("state.undeclared", "graph.broken_route") and one.reached]
        self._undeclared = [(key, one) for one in keys for key in re.findall(r"'(\w+)'", one.text)]
        self._dead = [one for one in survey.findings if one.goal == "repo.idle"]
        wasted = [one for one in survey.findings if one.goal == "outcome.unused"]
        self._lost = [one for one in wasted if one.reached]
        self._wasted = {term(one.text.partition(" ")[0]): one for one in wasted}
        self._sure = STATEMENT_SURE * absence(survey)

    def checked(self, statement: Finding) -> Checked:
        """The statement, looked up by who knows its matter."""
        missing = next((path for path in self._missing if path in statement.text), "")
        if missing:
            return _denied(statement, f"there is no {missing}")
        dead = self._of_dead(statement)
        if dead is not None:
            return dead
        lost = self._of_lost(statement)
        if lost is not None:
            return lost
        if statement.goal in MATTERS:
            return self._matter(statement, MATTERS[statement.goal])
        if not self._used:
            return _open(statement)
        look = {NAME: self._name, PRODUCT: self._product, NUMBER: self._number, TOLD: self._told}.get(statement.goal)
        return look(statement) if look is not None else _open(statement)

    def _told(self, statement: Finding) -> Checked:
        """A sentence that belongs to code which nothing reaches, or speaks of what the repository does not know."""
        if not self._passages or not statement.path or _CANDID.search(statement.text):
            return _open(statement)
        home = None if _DECLARES.search(statement.text) else self._passages.idle(statement.text)
        if home is not None:
            place = f"{home.path}:{home.line}"
            return _denied(statement, f"nothing reaches {home.name} at {place}", self._sure)
        unknown = self._passages.unknown(statement.path.split(), statement.text)
        return _denied(statement, f"nothing here knows of {unknown}", self._sure) if unknown else _open(statement)

    def _of_dead(self, statement: Finding) -> Checked | None:
        """A sentence that says of a function or node by its name that it does something, which nothing reaches."""
        said = f" {' '.join(_plain(statement.text))} "
        for one in self._dead:
            name = one.text.partition(": ")[0]
            parts = _plain(name)
            runs = term(name) in self._used and not one.text.endswith(("node", "the same"))
            if len(parts) > 1 and not runs and f" {' '.join(parts)} " in said and not _CANDID.search(statement.text):
                return _denied(statement, f"{one.text}, {one.path}:{one.line}")
        return None

    def _of_lost(self, statement: Finding) -> Checked | None:
        """A sentence that says of a result that it counts, or that all of it is kept, where it is lost."""
        said = set(_plain(statement.text))
        for key, one in self._undeclared:
            parts = [part for part in _plain(key) if part not in STOP]
            if parts and re.search(rf"{_CONDITION}\s+(?:[\w-]+\s+){{0,3}}{re.escape(parts[0])}", statement.text, re.IGNORECASE):
                return _denied(statement, f"{one.text.partition(chr(10))[0]}, {_place(one)}")
        for one in self._lost:
            name = one.text.partition(" ")[0]
            names = {part for part in _plain(name) if len(part) > _TITLE_WORD} if name not in _ANY else set()
            counts = one.text.endswith(_UNREAD) and _COUNTS.search(statement.text)
            of_name = names and names <= said and counts
            paths = re.findall(r"[\w/-]+\.[a-z]{2,5}\b", one.text) if "overwrites" in one.text else []
            if of_name or (_OF_ALL.search(statement.text) and any(path in statement.text for path in paths)):
                return _denied(statement, f"{one.text.partition(chr(10))[0]}, {_place(one)}")
        return None

    def _matter(self, statement: Finding, matter: Matter) -> Checked:
        if matter.scope == "tests":
            lost = self._passages.untested(statement.text, matter.words)
            return _denied(statement, f"no test knows of {lost}", self._sure) if lost else _open(statement)
        bare = self._passages.elsewhere(statement.text, matter.words) if matter.scope == "home" else None
        if matter.each and _OF_ALL.search(statement.text):
            bare = self._passages.without(matter.each, matter.words)
        if bare is not None:
            return _denied(statement, f"not so in {bare.name} at {bare.path}:{bare.line}", self._sure)
        if matter.scope:
            return _open(statement)
        for goal in matter.flaws:
            if goal in self._found and self._found[goal].confidence >= LOOKED_UP and self._is_near(statement, goal, matter):
                return _denied(statement, f"{goal} at {_place(self._found[goal])}", 0.8)
        if matter.denial:
            return _holds(statement, "no flaw that denies it was found") if self._used else _open(statement)
        for goal in matter.goals:
            if goal in self._found:
                if self._found[goal].confidence < LOOKED_UP and goal == "project.tests":
                    return _denied(statement, f"{goal}: {self._found[goal].text}")
                share = _SHARE.search(self._found[goal].text)
                if share and int(share[1]) < MOST and _OF_ALL.search(statement.text):
                    return _denied(statement, f"{goal}: {self._found[goal].text}")
                return _holds(statement, f"{goal} at {_place(self._found[goal])}")
        wasted = [one for name, one in self._wasted.items() if name in matter.words and name in _plain(statement.text)]
        if wasted and not _RECORDED.search(statement.text):
            return _denied(statement, f"{wasted[0].text}, {_place(wasted[0])}")
        if _DECLARES.search(statement.text) and not self._there.isdisjoint(matter.goals):
            return _holds(statement, "it is there, though nothing that runs uses it")
        unused = [one for one in self._survey.findings if one.goal in matter.goals and not one.reached]
        if unused and unused[0].goal.startswith(_BY_USE):
            return _denied(statement, f"what there is at {_place(unused[0])} is not used")
        return self._by_words(statement, matter)

    def _is_near(self, statement: Finding, goal: str, matter: Matter) -> bool:
        """Whether a flaw stands in code that the sentence speaks of, where that is asked for."""
        return not matter.near or self._passages.about(statement.text, self._found[goal])

    def _by_words(self, statement: Finding, matter: Matter) -> Checked:
        """By the names that code has which does such a thing."""
        if matter.words & self._used:
            return _holds(statement, f"the code names {min(matter.words & self._used)}")
        if matter.against and not matter.against & self._used:
            return _open(statement)
        sure = min((absence_of(goal, self._survey) for goal in matter.goals), default=absence(self._survey))
        elsewhere = not matter.words and all(no_occasion(goal, self._survey.examined) for goal in matter.goals)
        idle = matter.words & self._idle
        said = [one.group() for one in matter.pattern.finditer(statement.text)]
        vague = not idle and (MOODS["praise"].search(statement.text) or any(map(self._names_all, said)))
        if sure < LOOKED_UP or elsewhere or vague or (matter.words and not self._used):
            return _open(statement)
        why = f"only code that nothing reaches names {min(idle)}" if idle else "not found"
        return _denied(statement, why, STATEMENT_SURE * sure)

    def _names_all(self, said: str) -> bool:
        """Whether the code that runs names each word of a claim: then it may do this in a way of its own."""
        return terms(re.findall("[A-Za-z]+", said)) <= self._used

    def _name(self, statement: Finding) -> Checked:
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
        return _denied(statement, "no code has this name", self._sure) if invented else _open(statement)

    def _product(self, statement: Finding) -> Checked:
        called = LANGUAGES.get(statement.path.lower())
        if called is not None:
            return _open(statement) if not self._passages or called & self._passages.known.words else _denied(
                statement, "nothing here knows this language", self._sure)
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


def _plain(text: str) -> list[str]:
    """The stems of a text's words, in their order; a name of several words is several."""
    return [stem(part) for word in text.split() for part in words(word)]


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}" if finding.line else finding.path
