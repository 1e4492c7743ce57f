"""The request for a run, made ready for the log."""

from __future__ import annotations

import anyio
import anyio.to_thread

from actors.oa.policy import CARE
from actors.orchestra.bubblewrap import bubblewrap
from contracts.orchestra_events import RunRequested
from pmagent.host import Host
from pmagent.oa.asking import OBSERVED_SECONDS, KernelUnread
from pmagent.orchestra.request import checked
from pmagent.trust import require_covers


async def prepared_run(host: Host, asked: RunRequested) -> RunRequested:
    """The request as it may be recorded. Raises BadRun, BadConfig, NotAccepted, KernelUnread, SandboxUnavailable."""
    workspace = host.layout.workspace
    asked = await anyio.to_thread.run_sync(checked, asked, workspace)
    await anyio.to_thread.run_sync(require_covers, workspace, asked.config, "the run")
    if not (asked.plan_only or asked.dry_run):
        await anyio.to_thread.run_sync(bubblewrap)  # without one no task could begin
    await _known_mode(host, asked)
    return asked


async def _known_mode(host: Host, asked: RunRequested) -> None:
    """Wait until the surfaces have been read since the start: before that nobody knows the mode, and no permit is
    granted. A run that needs none, or is there to mend, goes on without. Raises KernelUnread."""
    with anyio.move_on_after(OBSERVED_SECONDS) as patience:
        await host.first_observed()
    needs_none = asked.action in CARE or (asked.plan_only and asked.plan is not None)
    if patience.cancelled_caught and not needs_none:
        raise KernelUnread(
            f"the surfaces have not been read in {OBSERVED_SECONDS:g} s, so nobody knows the kernel's mode",
            "pmagent log tail --type kernel.observed shows the last reading; pmagent doctor looks closer",
        )
