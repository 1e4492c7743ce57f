"""WebVTT, as our recorder writes it."""

import re
from dataclasses import dataclass
from pathlib import Path

CUE = re.compile(r"(\d{2}):(\d{2}):(\d{2})\.\d{3} --> ")


@dataclass(frozen=True)
class Cue:
    second: int
    text: str


@dataclass(frozen=True)
class Part:
    """About ten minutes of talk."""

    number: int
    start: int
    text: str


def cues(path: Path) -> list[Cue]:
    found: list[Cue] = []
    second = None
    for line in path.read_text("utf-8").splitlines():
        if match := CUE.match(line):
            hours, minutes, seconds = map(int, match.groups())
            second = hours * 3600 + minutes * 60 + seconds
        elif second is not None and line.strip():
            found.append(Cue(second, line.strip()))
    if not found:
        raise ValueError(f"{path} has no cues")
    return found


def parts(found: list[Cue], length: int = 600) -> list[Part]:
    cut: list[Part] = []
    start, texts = found[0].second, []
    for cue in found:
        if cue.second - start >= length and texts:
            cut.append(Part(len(cut), start, "\n".join(texts)))
            start, texts = cue.second, []
        texts.append(f"[{cue.second}] {cue.text}")
    cut.append(Part(len(cut), start, "\n".join(texts)))
    return cut


def stamp(second: int) -> str:
    return f"{second // 3600:02}:{second % 3600 // 60:02}:{second % 60:02}"
