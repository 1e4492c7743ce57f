"""How a live host and this user's registry meet: what is let in, and what the registry hears of it."""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from pmagent.service.folding import work_in
from pmagent.service.remarks import remark
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import Keeper, KnownLog, admit

REGISTRY_SECONDS: Final = 1.0
"""The registry hears at most so often how far the log is durable."""


def admitted(layout: Layout, *, named: bool = False) -> KnownLog | None:
    """The registry's entry of the workspace's log, which may be acted on; None: there is none yet. That a log is
    registered because an earlier release began it is remarked. ``named``: this user has named the database of the log
    and asked to go on with it, so what is open in it is no reason to refuse it. Raises what ``registry.admit``
    raises."""
    known, message = admit(layout, list if named and layout.evidence.database else partial(work_in, layout))
    if message:
        remark(message)
    return known


async def keep_registry(keeper: Keeper) -> None:
    """Write the registry's entry of a live log, until cancelled. A write that fails is warned of, once."""
    failed = False
    while True:
        await anyio.sleep(REGISTRY_SECONDS)
        await anyio.to_thread.run_sync(keeper.write)
        if keeper.failure is not None and not failed:
            import structlog  # commands that only look need none

            reason = str(keeper.failure)
            structlog.get_logger("pmagent").warning("this user's registry cannot be written", reason=reason)
        failed = keeper.failure is not None
