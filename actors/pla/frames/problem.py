"""A problem that keeps a frame from being taken; pure."""

from __future__ import annotations

from typing import Literal

from pmagent.events.errors import PmagentError

Code = Literal["no_frame", "no_source", "not_a_picture", "too_large", "timed_out", "no_program"]


class NoFrame(PmagentError, exit_code=1):
    """There is no frame: which way (``code``, of ``pla.frame_failed``), what happened, what next. Text of programs and
    of the system stays out of it, but for what is needed to know the cause."""

    def __init__(self, code: Code, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.code: Code = code
