"""Words and sentences of a report, as far as searching it needs them; pure, English first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.lists import Lists
from pmagent.events.unseen import UNSEEN

_LISTS: Final = Lists(__package__, "words")


def listed(text: str) -> frozenset[str]:
    """The words of ``text``, between blanks, as a set."""
    return frozenset(text.split())


STOP_WORDS: Final = listed(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing down during each else e.g etc every few for from
    further had has have having he her here hers him his how i i.e if in into is it its itself just like may me
    might more most must my near no nor not of off on once one only or other others our ours out over own per
    please same shall she should since so some such tell than that the their theirs them then there these they
    this those through to too under until up upon us use used uses using very via was we were what when where
    whether which while who whom whose why will with within without would yes yet you your yours
    """
)
"""Words that say nothing about what a passage is about."""

_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_WORD: Final = re.compile(r"\w+(?:[./_@+-]\w+)*")
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_END: Final = _LISTS.pattern("end")
_ABBREVIATED: Final = _LISTS.pattern("abbreviated")
_BRITISH: Final = re.compile(r"(?<=\w{3})is(?=(?:e|ed|es|er|ers|ing|ation|ations)$)")


def clean(text: str, *, aligned: bool = False) -> str:
    """``text`` without characters that are not seen or that change how others are seen, and without lone surrogates;
    blanks are one blank each (unless they are to stay ``aligned``), line ends stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    text = _UNSEEN.sub("", text).encode("utf-8", "replace").decode()
    return _BLANKS.sub(_as_long if aligned else " ", text)


def _as_long(blanks: re.Match[str]) -> str:
    return " " * len(blanks.group())


def clipped(text: str, most: int) -> str:
    """At most ``most`` characters of ``text``, cut at a blank where there is one near, and then with an ellipsis."""
    if len(text) <= most:
        return text
    cut = text.rfind(" ", int(most * 0.8), most - 1)
    return text[: cut if cut > 0 else most - 1].rstrip() + "…"


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case, in order; a name like ``src/a_b.py`` is one word, each character of a
    script without blanks is one."""
    return _WORD.findall(_CJK.sub(r" \g<0> ", text.lower()))


def parts(text: str) -> list[str]:
    """The words of ``text`` without what joins them (``fan-in`` has two), in one spelling for -ise and -ize."""
    return [
        _BRITISH.sub("iz", word) if "is" in word else word
        for word in re.findall(r"[^\W_]+", _CJK.sub(r" \g<0> ", text.lower()))
    ]


def telling(text: str) -> list[str]:
    """The words of ``text`` that say what it is about."""
    return [word for word in words(text) if word not in STOP_WORDS and (len(word) > 1 or _CJK.match(word))]


def apart(text: str) -> str:
    """``text`` with blanks around the characters of scripts that use none, so that an index can tell them apart."""
    return _CJK.sub(r" \g<0> ", text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of ``text``; a line end ends one."""
    start = 0
    for end in _END.finditer(text):
        if end.group().startswith("\n") or not _ABBREVIATED.search(text, start, end.start()):
            if sentence := text[start : end.end()].strip():
                yield sentence
            start = end.end()
    if sentence := text[start:].strip():
        yield sentence
