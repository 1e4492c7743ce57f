"""Alerts about events that belong to no area; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.core.alerts import Alert, Judged, Judges, Over
from pmagent.events.event import Event

HANDOVER: Final = "handed_over"
"""The kind of the alert that a hand-over note is."""


def _handed_over(event: Event) -> Iterator[Judged]:
    """Of each note an alert of its own: none takes the place of another."""
    yield Alert(
        kind=HANDOVER, severity="warn", title="A hand-over note waits to be read", subject=str(event.position),
        detail=f"{event.data.operator_id}: {event.data.text}",
    )  # fmt: skip


def _halted(event: Event) -> Iterator[Judged]:
    data = event.data
    detail = f"{data.name}: {data.error} in {data.place}, on the event at {data.input}"
    yield Alert(kind="actor_halted", severity="urgent", title="An actor is halted", subject=data.name, detail=detail)


def _resumed(event: Event) -> Iterator[Judged]:
    yield Over("actor_halted", event.data.name)


def _interrupted(event: Event) -> Iterator[Judged]:
    """A run or session tells of work that the end of a process cuts off; nobody tells of an outcome that was lost."""
    if not event.data.with_process:
        detail = f"of the effect requested at {event.data.request}: {event.data.reason}"
        yield Alert(kind="outcome_lost", severity="bad", title="An effect's outcome was not recorded", detail=detail)


def _recovered(event: Event) -> Iterator[Judged]:
    detail = f"at the start at position {event.position}"
    yield Alert(kind="log_recovered", severity="warn", title="The log's end was cut off and recovered", detail=detail)


def _taken_over(event: Event) -> Iterator[Judged]:
    """A holder that let go of the log is no news."""
    if event.data.why != "released":
        title = "The log was taken over, and had not been released"
        detail = f"by {event.data.holder}: {event.data.why}"
        yield Alert(kind="log_taken_over", severity="warn", title=title, detail=detail)


def _refused(event: Event) -> Iterator[Judged]:
    yield Alert(
        kind="sign_in_refused", severity="warn", title="A sign-in to the console was refused",
        detail=f"{event.data.operator_id or 'unknown name'}: {event.data.reason}",
    )  # fmt: skip


ALERTS: Final[Judges] = {
    "actor.halted": _halted,
    "actor.resumed": _resumed,
    "alert.handed_over": _handed_over,
    "console.refused": _refused,
    "effect.interrupted": _interrupted,
    "log.recovered": _recovered,
    "log.taken_over": _taken_over,
}
