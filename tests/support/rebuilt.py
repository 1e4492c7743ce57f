"""The documents of a small workspace, all at once."""

from __future__ import annotations

from pathlib import Path

from pmagent.contracts.content import whole
from pmagent.events.evidence import log_of
from pmagent.projections.core.documents import Documents, computed
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.projections.rebuild import parts_of
from pmagent.projections.registry import all_projections


def documents_of(workspace: Path, until: int | None = None) -> dict[str, bytes]:
    """All of the workspace's documents at once, rebuilt from its log: for small ones. Raises NotFound, CorruptLog,
    ProjectionHalted."""
    blobs, documents, given = log_of(workspace).blobs(), Documents(all_projections()), dict[str, bytes]()
    for found in parts_of(workspace, documents, until):
        given.update({path: whole(content, blobs) for path, content in computed(found).items()})
    for halt in documents.halted.values():
        raise ProjectionHalted(halt)
    return given
