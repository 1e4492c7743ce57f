"""Masks secrets in content that comes in pieces, in bounded memory (docs/design.md §2.7).

The content is taken in windows whose places depend on the content alone, never on how it was cut when it came. Each
window is seen with what stands before it, and with so much of what follows that a secret which begins in it is seen
whole; it ends before a secret that does not. So the result is that of masking the whole at once, as long as no secret
is longer than ``ContentMasker.window``. A block like PEM, which may be of any length, is left out to its end; another
secret that fills a whole window, to where no secret goes on.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from pmagent.events.redact_content import ContentMasker, MaskedText, Piece
from pmagent.events.secret_forms import MASK

BLOCK_CHARS: Final = 128 * 1024
"""A window, without what is seen around it. Larger ones are hardly faster, and keep other threads waiting."""

_WORD: Final = re.compile(r"""[^\s"'\\]*""")


class RedactionStream:
    """Fed with content in any pieces, gives it out masked. For one thread at a time."""

    def __init__(self, masker: ContentMasker, block: int = BLOCK_CHARS, around: int = 0) -> None:
        self._masker = masker
        self._around = around or masker.window
        self._block = block
        self._wide = _WideLiterals(masker.wide)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._before = ""
        self._skip: _Skip | None = None

    def feed(self, content: bytes) -> bytes:
        """Take more; what is certain by now, masked. No more than two windows are held back."""
        return self._taken(self._decoder.decode(self._wide.feed(content)))

    def finish(self) -> bytes:
        """The rest, masked."""
        last = self._taken(self._decoder.decode(self._wide.finish(), final=True))
        return last + _encoded(self._last("".join(self._waiting)))

    def _taken(self, text: str) -> bytes:
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars < self._block + self._around:
            return b""
        waiting = "".join(self._waiting)
        result, at = [], 0
        while len(waiting) - at >= self._block + self._around:
            masked, used = self._window(waiting[at : at + self._block + self._around])
            result.append(masked)
            at += used
        self._waiting = [waiting[at:]]
        self._waiting_chars = len(waiting) - at
        return _encoded("".join(result))

    def _window(self, text: str) -> tuple[str, int]:
        """The masked beginning of ``text``, and how many of its characters that covers."""
        if self._skip is not None:
            end = self._skip.end(text)
            if end < 0:
                return "", self._block
            self._skip = None
            return "", end
        found = self._masker.mask(self._before + text)
        start = len(self._before)
        end = start + self._block
        for piece in found.pieces:
            if piece.start < end < piece.end:
                end = piece.start
                if end <= start:
                    end = piece.end
                    self._skip = _Skip.of(self._masker, found.before, piece)
                break
        if self._skip is None:
            self._before = _context(found, end - self._around, end)
            return _between(found, start, end), end - start
        self._before = MASK
        return _between(found, start, end), self._skip.begin(self._block, len(text))

    def _last(self, text: str) -> str:
        if self._skip is not None:
            end = self._skip.end(text)
            if end < 0:
                return ""
            self._skip = None
            text = text[end:]
        found = self._masker.mask(self._before + text)
        return _between(found, len(self._before), len(self._before) + len(text))


class _Skip:
    """Leads over the rest of a secret that does not end in its window."""

    def __init__(self, masker: ContentMasker, goes_on: re.Pattern[str] | None) -> None:
        self._masker = masker
        self._goes_on = goes_on  # None: a block, up to its end

    @classmethod
    def of(cls, masker: ContentMasker, text: str, piece: Piece) -> _Skip | None:
        """For a secret that stands in ``text`` as ``piece``; None when it ends there."""
        found = text[piece.start : piece.end]
        if masker.open_block(found):
            return cls(masker, None)
        if text[piece.end :].strip("\0") or masker.block_end(found) == len(found):
            return None
        lead = text[piece.start - 1 : piece.start]
        return cls(masker, re.compile(rf"[^{lead}\\\n]*") if lead and lead in "\"'" else _WORD)

    def begin(self, block: int, whole: int) -> int:
        """From where on to look for its end; a PEM block's may have begun in the window."""
        return block if self._goes_on is None else whole

    def end(self, text: str) -> int:
        """Where in ``text`` it ends; -1 when it does not."""
        if self._goes_on is None:
            return self._masker.block_end(text)
        match = self._goes_on.match(text)
        end = match.end() if match else 0
        return end if end < len(text) else -1


class _WideLiterals:
    """Masks byte strings, in content that comes in pieces: what is left is what masking the whole leaves."""

    def __init__(self, wide: dict[bytes, bytes]) -> None:
        longest_first = sorted(wide, key=lambda form: (-len(form), form))
        self._instead = wide
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if wide else None
        self._longest = max(map(len, wide), default=0)
        self._held = b""

    def feed(self, content: bytes) -> bytes:
        """The end of the certain part: every form that begins before it would have been seen whole."""
        return self._masked(self._held + content, self._longest - 1) if self._pattern else content

    def finish(self) -> bytes:
        """The rest."""
        return self._masked(self._held, 0)

    def _masked(self, content: bytes, uncertain: int) -> bytes:
        certain = len(content) - uncertain
        result: list[bytes] = []
        at = 0
        for match in self._pattern.finditer(content) if self._pattern else ():
            if match.start() >= certain:
                break
            result += content[at : match.start()], self._instead[match[0]]
            at = match.end()
        certain = max(certain, at, 0)
        self._held = content[certain:]
        return b"".join((*result, content[at:certain]))


def _between(found: MaskedText, start: int, end: int) -> str:
    """The part of ``found`` that replaces the text from ``start`` to ``end``. A piece that began before ``start`` is
    masked again in what is behind it: better twice than not at all."""
    result: list[str] = []
    at = start
    for piece in found.pieces:
        if piece.end > start and piece.start < end:
            result += found.before[at : piece.start], piece.instead
            at = piece.end
    return "".join((*result, found.before[at:end]))


def _context(found: MaskedText, start: int, end: int) -> str:
    """The text from ``start`` to ``end``; of a secret that began earlier, which might be taken for something
    else now, only that there was one."""
    start = max(start, 0)
    for piece in found.pieces:
        if piece.start < start < piece.end:
            return MASK + found.before[piece.end : end]
    return found.before[start:end]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
