"""How a long piece of work stands and what it made public, in the one shape in which every service tells it
(docs/design.md §17)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.oa_documents import Document
from pmagent.contracts.payload import END
from pmagent.contracts.pla_moment import VISIBLE, Moment

JobState = Literal["queued", "running", "complete", "failed"]
JobId = Annotated[str, Meta(
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{2,127}" + END,
    description="an id that can be a file's name: letters, digits and . _ -, 3 to 128",
    extra={"description": "can be a file's name"},
)]
Service = Annotated[str, Meta(pattern=VISIBLE, min_length=2, max_length=64)]


class JobError(Document, frozen=True, kw_only=True):
    """Why a job failed: a word for programs, and a text for people."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    detail: Annotated[str, Meta(max_length=16_384)]


class JobStatus(Document, frozen=True, kw_only=True):
    """``jobs/<job_id>.json``. ``progress`` is the part that is done, 0 to 1: 0 while it is queued, 1 when it is
    complete. Only what failed has an ``error``, only what has ended a ``result``; what is not known is left out."""

    job_id: JobId
    status: JobState
    service: Service
    updated_at: Moment
    progress: Annotated[float, Meta(ge=0, le=1, extra={"description": "the part that is done"})] | UnsetType = UNSET
    message: Annotated[str, Meta(max_length=16_384)] | UnsetType = UNSET
    error: JobError | UnsetType = UNSET
    result: Annotated[dict[str, Any], Meta(max_length=100)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError for an error, a result or a progress that the status does not have."""
        if self.error is not UNSET and self.status != "failed":
            raise ValueError(f"a job that is {self.status} has no error")
        if self.result is not UNSET and self.status in ("queued", "running"):
            raise ValueError(f"a job that is {self.status} has no result")
        fixed = {"queued": 0.0, "complete": 1.0}.get(self.status)
        if self.progress is not UNSET and fixed is not None and self.progress != fixed:
            raise ValueError(f"the progress of a job that is {self.status} is {fixed}")


_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
Asset = Annotated[str, Meta(pattern=rf"^/assets(/{_NAME})+" + END, max_length=512)]
"""A place below /assets/: no segment begins with a dot, so that none leads out of it, and nothing is escaped."""


class Enclosure(Document, frozen=True, kw_only=True):
    """Models of a job's object."""

    stl: Asset
    obj: Asset | UnsetType = UNSET
    glb: Asset | UnsetType = UNSET


class Textures(Document, frozen=True, kw_only=True):
    """Pictures of its surface."""

    texture_png: Asset
    heightmap_png: Asset
    heightmap_exr: Asset | UnsetType = UNSET


class Previews(Document, frozen=True, kw_only=True):
    """Pictures of it from four sides."""

    hero: Asset
    iso: Asset
    top: Asset
    side: Asset


class PublicAssets(Document, frozen=True, kw_only=True):
    """The public part of a job."""

    job_json: Asset
    enclosure: Enclosure
    textures: Textures
    previews: Previews


class JobManifest(Document, frozen=True, kw_only=True):
    """Where a job's public assets lie. The PLA makes none; the contract is kept for those who do."""

    version: Annotated[str, Meta(extra_json_schema={"enum": ["v1"]})]
    job_id: JobId
    service: Service
    updated_at: Moment
    subfolder: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+" + END, max_length=64)] | UnsetType | None = UNSET
    public_root: Annotated[str, Meta(pattern=rf"^/assets/({_NAME}/)*({_NAME})?" + END, max_length=512)]
    public: PublicAssets
