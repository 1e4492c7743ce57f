"""Programs with a language of their own for texts: sed and awk (``pmagent.guests.programs``)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pmagent.guests.programs import SPECS, Asked, given, parted, words_known

_SED: Final = re.compile(r"""
    (?: [\s;{}]+
      | (?: \d+ | \$ | /(?:\\.|[^/\\\n])*/I? )? (?: [,~](?: [+~]?\d+ | \$ | /(?:\\.|[^/\\\n])*/I? ))? \s* !? \s*
        (?: [pdqnNDPhHgGxl=]\d*(?=[\s;}]|$)
          | [sy](?P<mark>[/|,\#@:%!_+])(?:(?!(?P=mark))(?:\\.|[^\\]))*(?P=mark)(?:(?!(?P=mark))(?:\\.|[^\\]))*(?P=mark)
            [gpiIM0-9]*(?=[\s;}]|$)
          | [aic]\\?[^\n]*
          | (?=\{) ) )*
""", re.VERBOSE)  # fmt: skip
"""Scripts that only print, delete, substitute and insert: no ``w``, ``r`` and ``e``."""


def sed(asked: Asked) -> None:
    """Files that sed reads, or with ``-i`` writes."""
    words_known(asked)
    operands, options = parted(asked, SPECS["sed"])
    if not sed_known(asked) or any(given(one, ("-f", "--file")) and "i" not in one for one in options):
        asked.why("a sed script that is not looked into")
    for word in operands:
        if in_place(asked):
            asked.found.write(word, asked.cwd)
        else:
            asked.found.read(word, asked.cwd)


def in_place(asked: Asked) -> bool:
    """Whether sed writes its files."""
    return any(re.match(r"-[nErsuz]*i|--i", text) for text in asked.texts)


def sed_known(asked: Asked) -> bool:
    """Whether sed's scripts only print, delete, substitute and insert."""
    texts = [word.shown for word in asked.rest]
    scripts = [texts[number + 1 : number + 2] for number, text in enumerate(texts)
               if re.fullmatch(r"-[nErsuz]*e|--expression", text or "")]  # fmt: skip
    plain = [[next((text for text in texts if not (text or "").startswith("-")), None)]]
    if any((text or "").startswith("--expression=") or re.match(r"-e.", text or "") for text in texts):
        return False
    return all(one and one[0] is not None and len(one[0]) < 4096 and _SED.fullmatch(one[0]) for one in scripts or plain)


def awk(asked: Asked) -> None:
    """Files that awk reads, by a program that starts and writes nothing."""
    words_known(asked)
    operands, options = parted(asked, msgspec.structs.replace(SPECS["awk"], skip=0))
    script = operands[0].shown if operands else None
    files = [one for one in options if given(one, SPECS["awk"].reads.split()) and not one.startswith(("-F", "-v"))]
    if files or script is None or re.search(r"system|getline|\||@|>|ARGV|ENVIRON|close", script):
        asked.why("an awk program that is not looked into")
    for word in operands[1:]:
        if not re.match(r"[A-Za-z_]\w*=", word.text or ""):
            asked.found.read(word, asked.cwd)
