"""A life of a workspace with sessions of the PLA of every end, and how to record it.

    .venv/bin/python -m tests.support.typing_history NAME

lives it in a copy of the example workspace, with the firmware's core behind a pseudo terminal, and records it as
``tests/histories/NAME``, which must not exist.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from pmagent.contracts.hid import HidLinked, HidLost, HidTripped
from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText
from pmagent.contracts.pla_events import (
    FrameSource,
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaModeRequested,
    PlaObserveRequested,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from pmagent.pla.demo.picture import picture
from pmagent.pla.linking import link_device
from pmagent.service.host import Host, open_host
from tests.conftest import fresh_example
from tests.support.histories import record
from tests.support.pla_live import configure
from tests.support.pla_pty import Pretend, Told, pretend

SECONDS = 60.0
LONG = TypeText(text="0123456789" * 60)
BY: dict[str, Any] = {"operator_id": "ada", "channel": "cli"}


class Life:
    """Sessions with one device, act by act."""

    def __init__(self, host: Host, device: Pretend) -> None:
        self._host = host
        self._device = device
        self._number = 0
        self._durable: Told[Event] = Told()
        host.runtime.listen(self._hear)

    def _hear(self, events: Sequence[Event], _: Sequence[str]) -> None:
        for event in events:
            self._durable.add(event)

    async def ask(self, payload: Any, *answers: str) -> Event:
        """Ask, and return the answer."""
        self._number += 1
        return await self._host.ask(payload, f"ask-{self._number}", set(answers), SECONDS)

    async def until(self, kind: type[Any], after: int) -> None:
        """Wait for a durable event of this kind behind the first ``after``."""
        await self._durable.until(lambda event: isinstance(event.data, kind), after)

    @property
    def so_far(self) -> int:
        """How many durable events there have been."""
        return len(self._durable.all)

    async def linked(self) -> None:
        """Wait for the link."""
        await self._durable.until(lambda event: isinstance(event.data, HidLinked))

    async def mode(self, *modes: Any) -> None:
        """One mode after the other."""
        for mode in modes:
            await self.ask(PlaModeRequested(mode=mode, **BY), "pla.mode_answered")

    async def ready(self) -> None:
        """In EXECUTE, and armed."""
        await self.mode("SUGGEST", "EXECUTE")
        await self.ask(PlaArmRequested(**BY, keeps_mode=True), "pla.arm_answered")

    async def propose(self, action: Action, **more: Any) -> Any:
        """Ask for a proposal: its payload, or the refusal's."""
        fields: dict[str, Any] = {"goal": "as it stands", "requested_by": "bob", "channel": "cli", "action": action}
        asked = PlaProposalRequested(**(fields | more))
        return (await self.ask(asked, "pla.proposed", "pla.proposal_refused")).data

    async def decide(self, proposed: PlaProposed, decision: Any = "APPROVED", **more: Any) -> None:
        """Decide."""
        fields = {"proposal_id": proposed.proposal_id, "decision": decision, "digest": proposed.digest, **BY}
        asked = PlaDecisionRequested(**(fields | more))
        await self.ask(asked, "pla.approved", "pla.rejected", "pla.decision_refused")

    async def typed(self, action: Action) -> None:
        """Propose, approve, and wait for the end."""
        proposed = await self.propose(action)
        after = self.so_far
        await self.decide(proposed)
        await self.until(PlaProposalClosed, after)

    async def struck(self, word: str) -> None:
        """Something happens to the device while it types."""
        proposed = await self.propose(LONG)
        told, after = len(self._device.told.all), self.so_far
        await self.decide(proposed)
        await self._device.told.until(lambda one: bool(one.get("text")), told)
        await self._device.obey(word)
        await self.until(PlaProposalClosed, after)


async def _live(workspace: Path, folder: Path) -> None:
    frames = folder / "frames"
    frames.mkdir()
    (frames / "screen.png").write_bytes(picture())
    source = FrameSource(path=str(frames))
    async with pretend(folder) as device, open_host(workspace, "daemon") as host, anyio.create_task_group() as tasks:
        await host.ready()
        life = Life(host, device)
        tasks.start_soon(link_device, host)
        await life.linked()
        await life.propose(TypeText(text="too early"))
        await life.mode("EXECUTE", "SUGGEST")
        await life.ask(PlaObserveRequested(frame=source, requested_by="bob", channel="cli"), "pla.observed")
        await life.decide(await life.propose(TypeText(text="only noted"), frame=source))
        await life.decide(await life.propose(MouseClick(button="left")), "REJECTED", reason="not there")
        await life.propose(TypeText(text="my password is hunter2"))
        await life.propose(TypeText(text="caf\u00e9"))
        await life.mode("EXECUTE")
        await life.ask(PlaArmRequested(**BY, keeps_mode=True), "pla.arm_answered")
        for action in (TypeText(text='echo "hello"\n'), KeyCombo(keys=["ctrl", "c"]), MouseMove(x=300, y=-40)):
            await life.typed(action)
        proposed = await life.propose(TypeText(text="as shown"))
        await life.decide(proposed, digest="0" * 64)
        await life.decide(proposed)
        await life.until(PlaProposalClosed, life.so_far - 1)
        await life.decide(proposed)
        after = life.so_far
        await life.propose(TypeText(text="too late"), lifetime_s=0.05)
        await life.until(PlaProposalClosed, after)
        await life.struck("kill")
        after = life.so_far
        await device.obey("restore")
        await device.obey("unplug")  # nothing less takes a kill back
        await device.obey("plug")
        await life.until(HidLinked, after)
        await life.ready()
        await life.ask(PlaDisarmRequested(**BY), "pla.arm_answered")
        await life.ask(PlaArmRequested(**BY, keeps_mode=True), "pla.arm_answered")
        await life.struck("reset")
        await life.until(HidTripped, after)
        broken = PlaContractBroken(
            contract="action_execute", kind="missing_field", pointer="/operator_approval", text="it is missing",
            by="a border", channel="document",
        )  # fmt: skip
        await life.ask(broken, "pla.violation")
        await life.ask(PlaEndRequested(**BY), "pla.mode_answered")
        after = life.so_far
        await device.obey("unplug")
        await life.until(HidLost, after)
        tasks.cancel_scope.cancel()


def live(workspace: Path, folder: Path) -> None:
    """Sessions with every end; the device and its frames are made in ``folder``."""
    configure(workspace, device=str(folder / "device"))
    anyio.run(_live, workspace, folder)


def main() -> None:
    """Record a life under the name given on the command line."""
    [name] = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        workspace = fresh_example(Path(folder) / "workspace")
        live(workspace, Path(folder))
        sys.stdout.write(f"{record(workspace, name)}\n")


if __name__ == "__main__":
    main()
