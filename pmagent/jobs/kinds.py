"""The kinds of jobs: what each is called, in the log, among the operations and at the shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from contracts.audit_events import AuditConcluded, AuditFailed
from contracts.orchestra_events import RunEnded


class Kind(msgspec.Struct, frozen=True):
    """``requested`` is the type of the event that begins one, ``ends`` are the types that end it; ``ask`` and
    ``cancel`` its operations; ``command`` lists them. ``state_of``: the payload of an end -> its state, in one word;
    ``states``: these, and "open". ``about`` is the field of the request that says what it is about."""

    word: str
    requested: str
    ends: frozenset[str]
    ask: str
    cancel: str
    command: str
    states: tuple[str, ...]
    about: str
    state_of: Callable[[Any], str]

    def state(self, end: Any) -> str:
        """How it ended, else ``open``; ``end`` is the payload of its end, None: there is none."""
        return "open" if end is None else self.state_of(end)


def _run_state(end: Any) -> str:
    return end.state if isinstance(end, RunEnded) else "refused"


def _audit_state(end: Any) -> str:
    if isinstance(end, AuditConcluded):
        return "concluded"
    if isinstance(end, AuditFailed):
        return "cancelled" if end.code == "cancelled" else "failed"
    return "refused"


RUNS: Final = Kind(
    word="run",
    requested="run.requested",
    ends=frozenset(("run.refused", "run.ended", "request.refused")),
    ask="orchestra.run",
    cancel="orchestra.cancel",
    command="pmagent runs",
    states=("open", "done", "failed", "cancelled", "timed_out", "stopped", "refused", "planned"),
    about="intent",
    state_of=_run_state,
)
AUDITS: Final = Kind(
    word="audit",
    requested="audit.requested",
    ends=frozenset(("audit.concluded", "audit.failed", "request.refused")),
    ask="audit.run",
    cancel="audit.cancel",
    command="pmagent audits",
    states=("open", "concluded", "failed", "cancelled", "refused"),
    about="repo_url",
    state_of=_audit_state,
)
KINDS: Final = (RUNS, AUDITS)


def cancelling(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation that takes a job back, as the fields of its request: who asks is ``operator``
    there, as in every operation that a person is behind."""
    fields = {name: value for name, value in arguments.items() if name != "request"}
    if "operator" in fields:
        fields["operator_id"] = fields.pop("operator")
    return fields
