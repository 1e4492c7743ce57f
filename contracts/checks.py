"""Configured checks and guards: programs of the workspace, run in the read-only sandbox (docs/design.md §12.5).

One request leads to a permit and a run for each of its checks, and to one answer:

    check.requested -> (oa.permit_requested -> check.run_requested -> check.ran | check.unstarted)* -> check.answered
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, event_type

CheckKind = Literal["check", "guard"]

CHECKS_MAX = 100
"""So many checks, and so many guards, a workspace may configure."""
NAME_CHARS_MAX = 100
ARGUMENTS_MAX = 100
ARGUMENT_CHARS_MAX = 4096
READS_MAX = 20
SECONDS_MAX = 600
"""A check may be given so long."""
AT_ONCE = 4
"""So many run at the same time."""
OUTPUT_BYTES_MAX = 256 * 1024
"""Kept of what a check writes to stdout, and as much of stderr: the first of it."""
TAIL_CHARS_MAX = 600
"""Of that, what its result repeats: the last of each. The results of all checks together fit into a line of the log."""

Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Argv = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=ARGUMENT_CHARS_MAX)]],
    Meta(min_length=1, max_length=ARGUMENTS_MAX),
]
Seconds = Annotated[float, Meta(gt=0, le=SECONDS_MAX)]
Reads = Annotated[list[Annotated[str, Meta(min_length=1, max_length=ARGUMENT_CHARS_MAX)]], Meta(max_length=READS_MAX)]


class ConfiguredCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check, or guard, as the workspace's settings name it: program and arguments."""

    name: Name
    argv: Argv


@event_type("check.requested", request=True)
class CheckRequested(Payload, frozen=True, kw_only=True):
    """Run ``checks``, all of one kind, for ``seconds`` each at most. Their names differ. ``reads`` are folders that
    they may read besides the workspace and the system's (absolute paths)."""

    kind: CheckKind
    checks: Annotated[list[ConfiguredCheck], Meta(min_length=1, max_length=CHECKS_MAX)]
    seconds: Seconds
    reads: Reads = []


_RUN = Effect(
    repeatable=False, limit_s=SECONDS_MAX + 60.0, concurrency=AT_ONCE, bulky=True,
    outcomes=("check.ran", "check.unstarted"),
)
"""Not repeatable, though nothing stands in the way of it: a command that only looks at something would otherwise begin
anew what an earlier one was stopped in. After a crash it is the checker who asks again."""


@event_type("check.run_requested", effect=_RUN)
class CheckRunRequested(OutwardRequest, frozen=True, kw_only=True):
    """Run one check, for the request at position ``request``: attempt number ``attempt`` (from 1), of at most
    ``seconds``; ``reads`` are the request's."""

    request: int
    kind: CheckKind
    name: Name
    argv: Argv
    seconds: Seconds
    attempt: Annotated[int, Meta(ge=1)]
    reads: Reads = []

    def scope(self) -> Scope:
        """See OutwardRequest. It changes nothing and reaches nobody, so it is a diagnostic."""
        return scope_of(self.kind, self.name)


def scope_of(kind: CheckKind, name: str) -> Scope:
    """The scope of the permit for running a check."""
    return Scope("diagnostic", f"{kind}:{name}")


@event_type("check.ran")
class CheckRan(Payload, frozen=True, kw_only=True):
    """The check run by the request at position ``request`` came to an end: exactly one of ``exit_code`` and ``signal``
    is set. ``stdout`` and ``stderr`` are the first ``OUTPUT_BYTES_MAX`` bytes of what it wrote, as plain text without
    control characters (``cut``: there was more); ``exceeded`` is what it was ended for that it used more of than
    allowed ("": it was not), ``unenforced`` are limits that this machine could not set, both in words."""

    request: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    duration_ms: Annotated[int, Meta(ge=0)]
    stdout: str
    stderr: str
    cut: bool
    exceeded: str = ""
    unenforced: list[str] = []


@event_type("check.unstarted")
class CheckUnstarted(Payload, frozen=True, kw_only=True):
    """The check was not started: there is no such program, or no sandbox. ``mend`` is what would change it."""

    request: int
    text: str
    mend: str


class CheckResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The outcome of one check. ``ran``: it came to an end of its own, or was ended at a limit; without that it has not
    passed. ``message`` is for people; ``stdout`` and ``stderr`` are the last of what it wrote; ``end`` is the position
    of the event that ended it (0: none did)."""

    name: Name
    passed: bool
    ran: bool
    message: str
    mend: str = ""
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    duration_ms: int | None = None
    unenforced: list[str] = []
    stdout: str = ""
    stderr: str = ""
    end: int = 0


@event_type("check.answered")
class CheckAnswered(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: one result a check, in the order of the request; or ``error``,
    with ``mend``, when none of them was run."""

    request: int
    results: list[CheckResult]
    error: str = ""
    mend: str = ""
