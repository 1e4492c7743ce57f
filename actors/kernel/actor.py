"""The kernel watcher as an actor: when to read the surfaces, and what mode a reading means; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.actors.kernel.mode import Expected, judged
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import WATCHER, KernelModeDecided, KernelObserved, KernelReadRequested, Reason
from pmagent.contracts.oa import OaBootRequested, OaSnapshotRequested
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event

READ_BY_THEMSELVES = frozenset(("oa.snapshot", "boot.oa", "log.adopt"))
"""Commands that run an engine of their own only to ask for something that has the surfaces read anyway, or for nothing
that may depend on them."""


class KernelState(msgspec.Struct, frozen=True):
    """The last decision, and what is expected of the surfaces. ``mode`` is "" before the first decision."""

    mode: str = ""
    phase: str = ""
    branch: str = ""
    reasons: list[Reason] = []
    expected: Expected = Expected()


class KernelWatcher:
    """Asks for a reading where a fresh one is due, and decides the mode when it, or its reasons, changed.

    A reading is due when an engine goes live (surfaces may have changed while none ran), and for every
    snapshot and boot, which must not be answered from memory (docs/design.md §12.3, §12.4).
    """

    name = WATCHER
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (DaemonStarted, OaSnapshotRequested, OaBootRequested, KernelObserved)
    )

    def initial(self) -> KernelState:
        """Nothing decided yet."""
        return KernelState()

    def evolve(self, state: KernelState, event: Event) -> KernelState:
        """Remember the watcher's own last decision, and whether surfaces are expected."""
        match event.data:
            case KernelModeDecided(mode=mode, phase=phase, branch=branch, reasons=reasons):
                return KernelState(mode, phase, branch, reasons, state.expected)
        expected = state.expected.after(event)
        return state if expected is state.expected else msgspec.structs.replace(state, expected=expected)

    def decide(self, state: KernelState, event: Event) -> Iterable[Payload]:
        """Ask for a reading, or say what a reading means if that is something new."""
        match event.data:
            case DaemonStarted(surface=surface) if surface not in READ_BY_THEMSELVES:
                return [KernelReadRequested(why="start")]
            case OaSnapshotRequested():
                return [KernelReadRequested(why="snapshot")]
            case OaBootRequested():
                return [KernelReadRequested(why="boot")]
            case KernelObserved():
                now = judged(event, state.expected)
                if (now.mode, now.phase, now.branch, now.reasons) != (
                    state.mode, state.phase, state.branch, state.reasons,
                ):
                    return [
                        KernelModeDecided(
                            mode=now.mode, previous=state.mode, reasons=now.reasons, phase=now.phase, branch=now.branch,
                            digest=now.digest,
                        )
                    ]
        return []


_UNWATCHED: Final = Reason(
    code="watcher_halted", mode="BLOCKED", text="the kernel watcher is halted, so nobody knows the mode",
    mend="start again with a version that does not fail; pmagent log tail --type actor.halted shows where",
)


def status(engine: Engine) -> dict[str, Any]:
    """The mode and its reasons; a mode that nobody watches is BLOCKED."""
    kernel: KernelState = engine.states[WATCHER]
    unwatched = [_UNWATCHED] if WATCHER in engine.halted else []
    return {
        "mode": "BLOCKED" if unwatched else kernel.mode or None, "phase": kernel.phase or None,
        "branch": kernel.branch or None,
        "reasons": [msgspec.to_builtins(reason) for reason in [*unwatched, *kernel.reasons]],
    }
