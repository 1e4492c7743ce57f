"""Every projection there is."""

from __future__ import annotations

from projections.audits.audits import Audits
from projections.oa_state import OaState
from projections.pla.sessions import Sessions
from projections.projection import AnyProjection
from projections.runs.folders import RunFolders


def all_projections() -> list[AnyProjection]:
    """One of each, in the order in which their documents are written."""
    return [OaState(), RunFolders(), Audits(), Sessions()]
