"""What goes on beside a host for as long as it carries runs: the surfaces are watched, and a failed log ends it."""

from __future__ import annotations

from typing import Final

import anyio
import anyio.to_thread

from pmagent.actors.kernel.effects import watch
from pmagent.actors.kernel.surfaces import digest
from pmagent.contracts.kernel import WATCHER
from pmagent.service.host import Host

FIRST_SECONDS: Final = 35.0
"""When the reading that a start asks for has not come by then, it will not: its performer has ended."""


async def watch_surfaces(host: Host) -> None:
    """Append the surfaces whenever they changed, until cancelled: the mode that permits rest on is that of now. The
    reading that each start asks for comes first."""
    known = ""
    with anyio.move_on_after(FIRST_SECONDS):  # it may have failed, and changes must be seen all the same
        known = digest((await host.first_observed()).surfaces)
    async for observed in watch(host.layout.workspace, known=known):
        last = host.observed
        same = last is not None and last.existing == observed.existing
        if last is not None and same and digest(last.surfaces) == digest(observed.surfaces):
            continue  # a snapshot or boot has read the same meanwhile
        id_ = f"kernel.observed:{host.storage.log_id()}:{host.runtime.engine.sequencer.position}"
        draft = await anyio.to_thread.run_sync(host.runtime.intake.fact, observed, id_, WATCHER)
        await host.runtime.append_draft(draft)


async def fail_with_log(host: Host) -> None:
    """Wait until the log fails, and raise why: then so has whatever goes on in this host."""
    await host.runtime.failed.wait()
    if host.runtime.failure is not None:
        raise host.runtime.failure
