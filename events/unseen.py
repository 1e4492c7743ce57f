"""Characters that are not seen, or that change how others are seen: terminals obey some, and editors hide others."""

from __future__ import annotations

from typing import Final

UNSEEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible, or direction marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # bidi, zero width
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # invisible, tags, variation selectors
)
"""As the inside of a regular expression's class; all of C0 but tab and line feed, which stand between other characters
as blanks do. Spelt out, so that no version of Unicode changes a decision or a document."""
