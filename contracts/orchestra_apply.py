"""Events of files of a run that a person takes over into a repository (docs/orchestra.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pmagent.contracts.control import OperatorAct
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra import Artifact, LocalId
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX
from pmagent.contracts.payload import END, Payload, event_type
from pmagent.contracts.reasoning import Identifier, Sha256

FILES_MAX = 512
CommitId = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?" + END)]


class AppliedFile(Document, frozen=True, kw_only=True):
    """A file that is to stand in the workspace as ``task`` left it; ``before``: the SHA-256 of what stood there ("":
    nothing)."""

    task: LocalId
    artifact: Artifact
    before: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?" + END)]


@event_type("run.apply_approved")
class RunApplyApproved(OperatorAct, frozen=True, kw_only=True):
    """An operator approves exactly these changes to the workspace, on top of the commit ``head`` ("": none yet).
    ``digest`` is what they were shown."""

    run_id: Identifier
    digest: Sha256
    head: CommitId
    files: Annotated[list[AppliedFile], Meta(min_length=1, max_length=FILES_MAX)]


@event_type("run.apply_ended")
class RunApplyEnded(Payload, frozen=True, kw_only=True):
    """The changes approved at position ``approval`` are in ``commit``; "": they are not, because of ``reason``."""

    run_id: Identifier
    approval: int
    commit: CommitId
    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] = ""
