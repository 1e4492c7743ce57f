"""The JSON Schemas of jobs, which every service shares (docs/design.md §17)."""

from __future__ import annotations

from pmagent.contracts.payload import END
from pmagent.contracts.pla_moment import VISIBLE
from pmagent.contracts.pla_schema_parts import MOMENT_TEXT, Schema, closed, one_of, text, when

_JOB = text(r"^[A-Za-z0-9][A-Za-z0-9._-]{2,127}" + END, description="can be a file's name")
_SERVICE = text(VISIBLE, 2, 64)
_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
ASSET = rf"^/assets(/{_NAME})+" + END
"""A place below /assets/: no segment begins with a dot, so that none leads out of it, and nothing is escaped."""
ASSET_ROOT = rf"^/assets/({_NAME}/)*({_NAME})?" + END


def job_status() -> Schema:
    """How a job stands: an error only when it failed, a result only when it has ended."""
    schema = closed(
        {
            "job_id": _JOB,
            "status": one_of("queued", "running", "complete", "failed"),
            "service": _SERVICE,
            "updated_at": MOMENT_TEXT,
            "progress": {"type": "number", "minimum": 0, "maximum": 1, "description": "the part that is done"},
            "message": text("", 0, 16_384),
            "error": closed({"code": text("", 1, 64), "detail": text("", 0, 16_384)}),
            "result": {"type": "object", "maxProperties": 100},
        },
        optional=("progress", "message", "error", "result"),
        description="How a job stands, in the one shape for every service.",
    )
    ties = [
        when("status", ["queued", "running", "complete"], {"properties": {"error": False}}),
        when("status", ["queued", "running"], {"properties": {"result": False}}),
        when("status", "queued", {"properties": {"progress": {"maximum": 0}}}),
        when("status", "complete", {"properties": {"progress": {"minimum": 1}}}),
    ]
    return schema | {"allOf": ties}


def job_manifest() -> Schema:
    """The public assets of a job. The PLA makes none; the contract is kept for those who do."""
    asset = text(ASSET, longest=512)
    enclosure = {"stl": asset, "obj": asset, "glb": asset}
    textures = {"texture_png": asset, "heightmap_png": asset, "heightmap_exr": asset}
    previews = {"hero": asset, "iso": asset, "top": asset, "side": asset}
    return closed(
        {
            "version": one_of("v1"),
            "job_id": _JOB,
            "service": _SERVICE,
            "updated_at": MOMENT_TEXT,
            "subfolder": {"type": ["string", "null"], "pattern": r"^[A-Za-z0-9_-]+" + END, "maxLength": 64},
            "public_root": text(ASSET_ROOT, longest=512),
            "public": closed(
                {
                    "job_json": asset,
                    "enclosure": closed(enclosure, optional=("obj", "glb")),
                    "textures": closed(textures, optional=("heightmap_exr",)),
                    "previews": closed(previews),
                }
            ),
        },
        optional=("subfolder",),
        description="The public assets of a job, by their places below /assets/.",
    )
