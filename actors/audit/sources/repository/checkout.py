"""Checks out a fetched repository, for tools that want files; blocking."""

from __future__ import annotations

from pmagent.actors.audit.sources.repository.clone import DETACHED, REF, Clone
from pmagent.actors.audit.sources.repository.tree import tree
from pmagent.contracts.audit_events import AuditLimits


def check_out(clone: Clone, limits: AuditLimits) -> None:
    """Put the audited commit's files beside ``.git``, on a branch of the source's name. Raises SourceFailed: too_large;
    git, for names that this file system does not take."""
    tree(clone.ask, REF, limits.clone_bytes)
    branch = f"refs/heads/{clone.branch}"
    if clone.branch != DETACHED:
        clone.ask("update-ref", branch, clone.commit)
        clone.ask("symbolic-ref", "HEAD", branch)
    else:
        clone.ask("update-ref", "--no-deref", "HEAD", clone.commit)
    clone.ask("--work-tree", clone.top, "reset", "--quiet", "--hard", clone.commit)
