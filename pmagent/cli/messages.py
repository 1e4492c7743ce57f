"""The daemon's own messages: structured, one line each, on stderr, through the one writer."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from pmagent.cli.output import Output, Styled
from pmagent.events.log import now

_STYLES: Final = {"warning": "yellow", "error": "red", "critical": "red"}
_INFO: Final = 20


class _Notes:
    """A logger, in structlog's sense: it writes pieces. It never waits: its caller may be the event loop, which keeps a
    device's lease and hears who disarms. Unread messages are counted instead, and reported later."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._lost = 0

    def msg(self, level: str, text: str) -> None:
        """Say it, if somebody reads."""
        if self._lost and self._say("warning", f"{self._lost} messages before this were not shown: nobody read them"):
            self._lost = 0
        if self._lost or not self._say(level, text):
            self._lost += 1

    def _say(self, level: str, text: str) -> bool:
        style = _STYLES.get(level, "cyan")
        return self._output.try_note(Styled(now(), "dim"), " ", Styled(f"{level:<7}", style), f" {text}")

    debug = info = warning = error = critical = exception = msg


def _rendered(_logger: Any, level: str, event: MutableMapping[str, Any]) -> tuple[tuple[str, str], dict[str, Any]]:
    """The arguments of ``_Notes.msg``, as structlog wants them."""
    what = str(event.pop("event", ""))
    return (level, " ".join([what, *(f"{name}={value}" for name, value in event.items())])), {}


def log_through(output: Output) -> None:
    """From now on, messages leave through ``output``."""
    notes = _Notes(output)
    structlog.configure(
        processors=[_rendered], wrapper_class=structlog.make_filtering_bound_logger(_INFO),
        logger_factory=lambda *_: notes, cache_logger_on_first_use=False,
    )
