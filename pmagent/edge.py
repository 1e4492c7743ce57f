"""An area's edge: its parts that touch the world or meet people, as data (``pmagent.actors.core.area`` is the area
itself).

Parts are named as ``module:name`` and loaded when they are needed: the command line knows every edge, and loads none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pmagent.actors.core.area import load

if TYPE_CHECKING:
    from pmagent.actors.core.actor import Performers
    from pmagent.actors.model.models import Models
    from pmagent.actors.pla.line.holding import Line
    from pmagent.contracts.pla import Action
    from pmagent.service.answer import Answer


class Given(NamedTuple):
    """The parts of a host that performers get: models, the line to the device, the plain text of what is masked."""

    models: Models
    line: Line
    plain: Callable[[str], Action | None]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may be asked of a live workspace. ``perform``: (host, arguments) -> answer; may raise.

    ``alone``: (workspace, name, arguments) -> answer, for a log that nobody holds; ``looks``: the log answers it also
    beside a daemon that does not. ``absent``: (error) -> answer, where there is no workspace. ``seconds``: (arguments)
    -> so long a daemon may take to answer.

    ``configured``: it does something that the workspace's configuration says, so all of that must have been accepted.
    ``lowers``: it ends or lowers something, or only notes it; a configuration that was widened keeps nobody from it.
    ``stops``: it is carried out though its client has gone, and waits for no daemon that is silent; ``outlives``:
    (host, arguments) -> the first of these, where the daemon knows better. ``unwritten``: it depends on no document.
    ``unpaused``: without a daemon it is refused in a pause, which nobody would end meanwhile. ``again``: the option
    ``--request`` of its command asks again, and does it once.
    """

    perform: str | Callable[[Any, dict[str, Any]], Awaitable[Answer]]
    alone: str = ""
    looks: bool = False
    absent: str = ""
    seconds: str = ""
    configured: bool | Callable[[Path, Mapping[str, Any]], bool] = False
    lowers: bool = False
    stops: bool | Callable[[Mapping[str, Any]], bool] = False
    outlives: str = ""
    unwritten: bool = False
    unpaused: bool = False
    again: bool = False


class Command(NamedTuple):
    """A command: its place, and its line in the list."""

    place: str
    text: str


class Commands(NamedTuple):
    """A group of commands: its line in the list, its help, and the commands by name."""

    text: str
    help: str
    entries: Mapping[str, Command]


class Section(NamedTuple):
    """A part of the console that its navigation names as ``text``; a smaller ``rank`` stands further in front. ``key``
    follows ``g``; ``what`` is there; ``command`` shows much the same."""

    rank: int
    name: str
    address: str
    text: str
    key: str
    what: str
    command: tuple[str, ...]


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """``area``: whose it is; "": the core's. ``performers``: each a mapping of request type -> performer, or a function
    that makes one of what is ``Given``; ``folders``: where they work in a workspace, emptied at a start. ``services``:
    (host) -> a part of a daemon's life. ``operations`` and ``commands``: by name. ``views``: modules of pages, each
    with its ``routes``; ``sections``: those of them that the navigation names. ``by_hand``: the hint for a user whose
    request to stop something the daemon does not answer."""

    area: str = ""
    performers: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    operations: Mapping[str, Operation] = {}
    commands: Mapping[str, Command | Commands] = {}
    views: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    by_hand: str = ""


def performers_of(edge: Edge, given: Given) -> Performers:
    """The performers of ``edge``."""
    made: dict[Any, Any] = {}
    for reference in edge.performers:
        part = load(reference)
        made |= part(given) if callable(part) else part
    return made
