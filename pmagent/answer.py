"""What an operation answers, whoever performs it."""

from __future__ import annotations

from typing import Any

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation answers: the document, the exit code, and warnings for stderr."""

    document: dict[str, Any]
    exit_code: int = 0
    warnings: list[str] = []
