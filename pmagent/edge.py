"""An area's edge: its parts that touch the world or meet people, as data (``pmagent.actors.core.area`` is the area
itself).

Parts are named as ``module:name`` and loaded when they are needed: the command line knows every edge, and loads none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pmagent.service.answer import Answer


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may be asked of a live workspace. ``perform``: (host, arguments) -> answer; may raise.

    ``alone``: (workspace, name, arguments) -> answer, for a log that nobody holds; ``looks``: the log answers it also
    beside a daemon that does not. ``absent``: (error) -> answer, where there is no workspace. ``seconds``: (arguments)
    -> so long a daemon may take to answer.

    ``configured``: it does something that the workspace's configuration says, so all of that must have been accepted;
    or (workspace, arguments) -> whether it does.
    ``lowers``: it ends or lowers something, or only notes it; a configuration that was widened keeps nobody from it.
    ``stops``: it is carried out though its client has gone, and waits for no daemon that is silent; ``outlives``:
    (host, arguments) -> the first of these, where the daemon knows better. ``unwritten``: it depends on no document.
    ``unpaused``: without a daemon it is refused in a pause, which nobody would end meanwhile. ``again``: the option
    ``--request`` of its command asks again, and does it once. ``quick``: (host) -> the answer at once; None where it
    takes more: then ``perform`` does.

    On a machine that does not hold the log (docs/machines.md lists all): ``far``: the holder is asked, through the
    database of the log; once more is the same request. ``own``: arguments that mean a file or a process of the machine
    on which they are given, and are never sent; ``content``: a file's content, in which nobody looks for secrets.
    ``here``: that machine answers by itself, from the log or about its own files. ``there``: why, and how, it is asked
    for on the holder's machine alone; of one that is ``far``, with what is its ``own``.
    """

    perform: str | Callable[[Any, dict[str, Any]], Awaitable[Answer]]
    alone: str = ""
    looks: bool = False
    absent: str = ""
    seconds: str = ""
    configured: bool | str = False
    lowers: bool = False
    stops: bool | Callable[[Mapping[str, Any]], bool] = False
    outlives: str = ""
    unwritten: bool = False
    unpaused: bool = False
    again: bool = False
    quick: str = ""
    far: bool = False
    own: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    here: bool = False
    there: str = ""


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
    """``area``: whose it is; "": the core's.

    ``resources``: (environment) -> what it keeps while a host lives (``pmagent.actors.core.actor.Resources``); one with
    a method ``hear`` is told of all that becomes durable, one with ``join`` says which effects go on elsewhere.
    ``performers``: each a mapping of request type -> performer, or (resources) -> one; ``folders``: where they work in
    a workspace, which are emptied before a start. ``ready``: (host) -> returns when outward effects may begin.
    ``services``: (host) -> a part of a daemon's life; one with a parameter ``task_status`` says when it serves, and
    nobody is told before that the daemon is up.

    ``status``: (engine) -> its part of the document of ``pmagent status``. ``alerts``: (payload) -> tells the operator
    at the daemon's screen, if they have to know. ``open``: (engine) -> a line for each piece of work that a start would
    go on with, besides jobs and effects; ``ends``: (host, operator) -> ends its work, for a log that is adopted.

    ``operations`` and ``commands``: by name. ``by_hand``: the hint for a user whose request to stop something is not
    answered. ``views``: modules of pages, each with its ``routes``; ``sections``: those of them that the navigation
    names.
    """

    area: str = ""
    resources: str = ""
    performers: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    ready: str = ""
    services: tuple[str, ...] = ()
    status: str = ""
    alerts: str = ""
    open: str = ""
    ends: str = ""
    operations: Mapping[str, Operation] = {}
    commands: Mapping[str, Command | Commands] = {}
    by_hand: str = ""
    views: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def hosted(self) -> Iterator[str]:
        """All that a host and its operations use of it."""
        parts = (self.resources, self.ready, self.status, self.alerts, self.open, self.ends)
        performed = (operation.perform for operation in self.operations.values())
        for part in (*self.performers, *self.folders, *parts, *self.services, *performed):
            if isinstance(part, str) and part:
                yield part
