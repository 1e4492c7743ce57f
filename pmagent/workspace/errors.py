"""Errors of ``pmagent init`` and ``pmagent kernel refresh``."""

from __future__ import annotations

from pmagent.events.errors import PmagentError


class WorkspaceError(PmagentError):
    """The workspace is not one in which surfaces can be written, or holds one that must not be
    overwritten."""

    exit_code = 2
