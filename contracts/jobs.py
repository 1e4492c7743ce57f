"""How a long piece of work stands, in the one shape in which every service tells it (spec pla_contracts_index, Job
Status)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from contracts.oa_documents import Document
from contracts.reasoning import END, Timestamp

JobState = Literal["queued", "running", "complete", "failed"]
JobId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}" + END,
        description="an id that can be a file's name: letters, digits and . _ -, at most 128",
    ),
]


class JobError(Document, frozen=True, kw_only=True):
    """Why a job failed: a word for programs, and a text for people."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    detail: Annotated[str, Meta(max_length=16_384)]


class JobStatus(Document, frozen=True, kw_only=True):
    """``jobs/<job_id>.json``. ``progress`` is the part that is done, 0 to 1; what is not known is left out."""

    job_id: JobId
    status: JobState
    service: Annotated[str, Meta(min_length=1, max_length=64)]
    updated_at: Timestamp
    progress: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    message: Annotated[str, Meta(max_length=16_384)] | msgspec.UnsetType = msgspec.UNSET
    error: JobError | msgspec.UnsetType = msgspec.UNSET
    result: Annotated[dict[str, Any], Meta(max_length=100)] | msgspec.UnsetType = msgspec.UNSET
