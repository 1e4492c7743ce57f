"""Personas: their prompts, how much of their text they share, and the stances they are told to take; pure.

Two texts are compared by their shingles, all rows of three words: the share is twice the number of shingles that both
have (as often as both have them), divided by the number of shingles of both. 1: the same words; 0: no three words in a
row in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import clean
from pmagent.actors.audit.detectors.code.prompts import Prompt, is_prompt_file, prompts_in, prompts_in_text
from pmagent.actors.audit.detectors.code.scopes import module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding, Similarity

COLLUSION: Final = 0.5
"""From this share on, two personas share half of their text."""
PERSONAS_MAX: Final = 30
"""So many personas are compared with each other."""
FILES_MAX: Final = 100
"""So many files of prompts are read."""
_SHINGLE: Final = 3
_WORD: Final = re.compile(r"[^\W_]+")


def _words(*rows: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(word for row in rows for word in row.split())})\b", re.IGNORECASE)


_STANCES: Final[dict[str, re.Pattern[str]]] = {
    "attacks": _words(
        r"adversarial attack prosecut\w+ gaps flaws loopholes laziness negligen\w+ fraud hostile harsh\w* merciless",
        r"ruthless cynical s[kc]eptic\w* critic\w* doubt\w* distrust\w* pessimis\w* worst penali[sz]e\w* charge\w*",
        r"strict\w* guilty punish\w* trust\sno\sone",
    ),
    "credits": _words(
        r"reward\w* effort intent\w* creativ\w* spirit generous\w* forgiv\w* charitab\w* mercy merit\w* strengths?",
        r"praise\w* optimis\w* defen[sd]\w* advocate\w* encourag\w* credit sympath\w* lenien\w* mitigat\w* good\sfaith",
        r"benefit\sof\sthe\sdoubt",
    ),
    "weighs": _words(
        r"pragmat\w* practical\w* maintain\w* architectur\w* technical\sdebt viab\w* works? trade-?offs? realis\w*",
        r"engineer\w* production modular\w* scalab\w* sound\w* neutral\w* balanced? tie-?break\w* objective\w*",
    ),
}
"""Words by which a prompt tells its persona to attack, to credit, or to be practical."""


def similarity(a: str, b: str) -> float:
    """The share of their text that two texts have in common, from 0 to 1; the same in both directions. Upper and lower
    case, blanks and punctuation make no difference. Two empty texts share nothing."""
    return _share(_shingles(a), _shingles(b))


def _share(one: Counter[tuple[str, ...]], other: Counter[tuple[str, ...]]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _sits(prompt: Prompt, seats: Counter[str], judging: Counter[str]) -> bool:
    """Whether a prompt stands in a dict of which at least half judge by their names."""
    return bool(prompt.family) and 2 * judging[prompt.family] >= seats[prompt.family]


def _longest(named: Iterable[tuple[str, Prompt]]) -> list[Prompt]:
    longest: dict[str, Prompt] = {}
    for name, prompt in named:
        known = longest.get(name)
        if known is None or len(known.text) < len(prompt.text):
            longest[name] = prompt
    return list(longest.values())


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    if len(words) < _SHINGLE:
        return Counter([tuple(words)] if words else [])
    return Counter(zip(*(words[start:] for start in range(_SHINGLE)), strict=False))


class PersonaReader:
    """Finds judges.*; a Detector. Where two or more personas judge by their names, only those are compared."""

    def __init__(self) -> None:
        self._prompts: list[Prompt] = []
        self._pairs: list[tuple[Prompt, Prompt, float]] | None = None

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is not None and source.role == "code":
            self._prompts.extend(prompts_in(module))
            self._pairs = None

    def take_files(self, files: Sequence[str], read: Callable[[str], bytes | None]) -> None:
        """Look at prompts in files of their own. ``read`` is asked for a few of ``files`` only."""
        named = [path for path in sorted(files) if is_prompt_file(path)]
        for path in named[:FILES_MAX]:
            self._prompts.extend(prompts_in_text(path, (read(path) or b"").decode("utf-8", "replace")))
        self._pairs = None

    def personas(self) -> list[Prompt]:
        """One prompt for each persona, its longest, in the order of path and line. Those that judge by their name, or
        stand in a dict of which half do, if there are two; else those that are spoken to, whatever the variable is
        called."""
        whole = [prompt for prompt in self._prompts if not prompt.slot]
        seats = Counter(prompt.family for prompt in whole if prompt.family)
        judging = Counter(prompt.family for prompt in whole if prompt.family and prompt.judges)
        whole = [prompt._replace(judges=prompt.judges or _sits(prompt, seats, judging)) for prompt in whole]
        found = _longest((prompt.persona, prompt) for prompt in whole if prompt.judges)
        if len(found) < 2:
            found = _longest((prompt.said, prompt) for prompt in whole if prompt.said)
        return sorted(found, key=lambda prompt: (prompt.path, prompt.line, prompt.persona))[:PERSONAS_MAX]

    def similarities(self) -> list[Similarity]:
        """Every pair of personas and the share of their text that they have in common."""
        return [
            Similarity(one=one.persona, other=other.persona, share=round(share, 4))
            for one, other, share in self._compared()
        ]

    def findings(self) -> Iterator[Finding]:
        """Personas, how distinct they are, the stances they take."""
        personas = self.personas()
        if len(personas) >= 2:
            sure = 0.95 if all(prompt.judges for prompt in personas) else 0.7
            for prompt in personas:
                yield _of(prompt, "judges.personas", f"prompt of the persona {prompt.persona}", sure)
            yield from self._shared(personas, sure)
            yield from _stances(personas)
        elif slot := next((prompt for prompt in self._prompts if prompt.slot), None):
            says = "one prompt for all personas: its opening names the persona by a placeholder"
            yield _of(slot, "judges.collusion", says, 0.6)

    @property
    def examined(self) -> Mapping[str, int]:
        """How many prompts were looked at, and how many personas compared."""
        return {"prompts": len(self._prompts), "personas": len(self.personas())}

    def _compared(self) -> list[tuple[Prompt, Prompt, float]]:
        if self._pairs is None:
            shingled = [(prompt, _shingles(prompt.text)) for prompt in self.personas()]
            self._pairs = [(one, other, _share(a, b)) for (one, a), (other, b) in combinations(shingled, 2)]
        return self._pairs

    def _shared(self, personas: list[Prompt], sure: float) -> Iterator[Finding]:
        colluding = [pair for pair in self._compared() if pair[2] >= COLLUSION]
        for one, other, share in colluding:
            says = f"{one.label} and {other.label} share {share:.0%} of their text"
            yield _of(one, "judges.collusion", says, sure if one.judges and other.judges else 0.5)
        if not colluding:
            one, other, share = max(self._compared(), key=lambda pair: pair[2])
            says = f"{len(personas)} personas: {', '.join(prompt.label for prompt in personas[:8])}; the two most alike"
            says += f" are {one.persona} and {other.persona} with {share:.0%} of their text in common"
            first = personas[0]
            yield Finding(goal="judges.distinct", path=first.path, line=first.line, text=clean(says), confidence=sure)


def _stances(personas: list[Prompt]) -> Iterator[Finding]:
    """Three personas of which one is told to attack, another to credit, a third to be practical: each stance goes to
    the persona whose text speaks of it most, in proportion to the other stances."""
    counted = {
        prompt.persona: {
            stance: len(words.findall(prompt.text)) + 2 * len(words.findall(prompt.persona))
            for stance, words in _STANCES.items()
        }
        for prompt in personas
    }
    taken: dict[str, Prompt] = {}
    for stance in _STANCES:
        ranked = sorted(
            (prompt for prompt in personas if prompt not in taken.values() and counted[prompt.persona][stance]),
            key=lambda prompt: (-_lead(counted[prompt.persona], stance), prompt.path, prompt.line),
        )
        if not ranked or _lead(counted[ranked[0].persona], stance) <= 1 / 3:
            return
        taken[stance] = ranked[0]
    says = "; ".join(f"{prompt.label} {stance}" for stance, prompt in taken.items())
    first = min(taken.values(), key=lambda prompt: (prompt.path, prompt.line))
    yield Finding(goal="judges.stances", path=first.path, line=first.line, text=clean(says), confidence=0.7)


def _lead(counted: dict[str, int], stance: str) -> float:
    return counted[stance] / max(1, sum(counted.values()))


def _of(prompt: Prompt, goal: str, says: str, sure: float) -> Finding:
    text = clean(f"{says}\n{prompt.text[:500].strip()}")
    return Finding(goal=goal, path=prompt.path, line=prompt.line, text=text, confidence=sure)
