"""The request for an audit, made ready for the log."""

from __future__ import annotations

from importlib import import_module

import anyio
import anyio.to_thread

from contracts.audit_events import AuditRequested
from pmagent.host import Host
from pmagent.oa.asking import OBSERVED_SECONDS


async def prepared_audit(host: Host, asked: AuditRequested) -> AuditRequested:
    """The request as it may be recorded. Raises BadAudit, BadRubric, Misplaced, ModelUnavailable."""
    from pmagent.audit.request import checked  # with the audit's models, which nobody else needs

    # The auditor's modules take their time to import; nobody who waits for the daemon waits for that.
    await anyio.to_thread.run_sync(import_module, "actors.audit.progress")
    asked = await anyio.to_thread.run_sync(checked, asked, host.layout.workspace)
    for name in (asked.model, asked.vision_model):
        if name:
            host.models.check("langchain", name)
    with anyio.move_on_after(OBSERVED_SECONDS):  # a mode that nobody knows forbids an audit nothing: it only looks
        await host.first_observed()
    return asked


def check_masked(asked: AuditRequested, drafted: AuditRequested) -> None:
    """Look whether the request is one still, now that its secrets are masked. Raises BadAudit."""
    from pmagent.audit import request

    request.check_masked(asked, drafted)
