"""Errors of ``pmagent init`` and ``pmagent kernel refresh``."""

from __future__ import annotations

from pmagent.events.errors import PmagentError


class WorkspaceError(PmagentError, exit_code=2):
    """The workspace is not one in which surfaces can be written, or holds one that must not be
    overwritten."""
