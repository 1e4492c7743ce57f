"""A standby's fold: it goes on from there only if the log does, and says how the log stands; nothing else."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from pmagent.events.errors import NotFound
from pmagent.events.storage import StorageReader
from pmagent.events.store import Holder
from pmagent.service.client import REPLY_SECONDS, FarUnknown, NotFromHere, NotTaken, ask_holder, require_possible
from pmagent.service.folding import Folded, fold_into
from pmagent.service.standby import Follower, StandsBy
from pmagent.workspace.layout import Layout
from tests.support.logs import BatchWriter, draft
from tests.support.memory_log import MemoryLog


def begun(*numbers: int) -> MemoryLog:
    """A log with these notes."""
    log = MemoryLog()
    with log.lease("tests") as lease:
        storage = lease.open("ab" * 16)
        writer = BatchWriter(storage)
        writer.create(storage.log_id())
        for number in numbers:
            writer.write([draft(number)])
    return log


def test_what_is_folded_counts_only_where_the_log_goes_on_from_there(workspace: Path) -> None:
    layout, ready = Layout(workspace), list[str]()
    layout.prepare()
    mine, longer, other, shorter = begun(1, 2), begun(1, 2, 3), begun(1, 5, 6), begun(1)
    with closing(Follower(layout, mine, lambda: ready.append("follows"))) as follower:
        assert follower.follow() == 3
        assert follower.follow() == 3
        assert ready == ["follows"]
        folded = follower.folded(longer.open())
        assert folded is not None
        assert folded.engine.sequencer.position == 3
        folded.fold(longer.open(), 4)
        assert folded.engine.sequencer.position == 4
        assert follower.folded(other.open()) is None
        assert follower.folded(shorter.open()) is None
        follower.give_up()
        assert follower.follow() is None


async def test_a_look_sees_the_logs_end_and_nothing_else_is_done(workspace: Path) -> None:
    layout, log = Layout(workspace), begun(1)
    layout.prepare()
    with closing(Follower(layout, log, lambda: None)) as follower:
        assert follower.follow() == 2
        with log.lease("tests") as lease:
            BatchWriter(lease.open()).write([draft(2)])
        seen = (await follower.perform("status", {})).document
        assert (seen["log"]["position"], seen["daemon"]) == (3, "elsewhere"), "as of now, not as of the last round"
        for operation in ("control.pause", "figures", "rebuild", "no.such"):
            with pytest.raises(StandsBy):
                await follower.perform(operation, {})
        follower.close()
        with pytest.raises(StandsBy):
            await follower.perform("status", {})


async def test_a_fold_that_is_cut_off_is_begun_anew(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, log, half = Layout(workspace), begun(1, 2), list[Folded]()
    layout.prepare()

    def cut_off(self: Folded, storage: StorageReader, until: int) -> None:
        half.append(self)
        fold_into(storage, self.engine, self.documents, log.blobs(), 0, until=until - 1)
        raise NotFound("the database went away", "")

    with closing(Follower(layout, log, lambda: None)) as follower:
        with monkeypatch.context() as patched:
            patched.setattr(Folded, "fold", cut_off)
            with pytest.raises(NotFound):
                await follower.perform("status", {})
        assert follower.follow() == 3
        found = follower.folded(log.open())
        assert found is not None
        assert (found.engine.sequencer.position, found in half) == (3, False)


async def test_a_look_that_hangs_keeps_no_log_from_being_taken_over(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmagent.service.standby.LOOK_SECONDS", 0.0)
    layout, log = Layout(workspace), begun(1)
    layout.prepare()
    follower = Follower(layout, log, lambda: None)
    assert follower.follow() == 2
    with follower._turn:
        assert follower.follow() == 2
        follower.close()
    assert follower.folded(log.open()) is None, "somebody may still look at it"


def test_that_somebody_signed_in_by_a_secret_is_not_sent(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()

    class Asking:
        def ask(self, _id: str, _operation: str, arguments: str, _seconds: float) -> None:
            sent.append(arguments)

        def reply(self, _id: str, _seconds: float) -> tuple[bool, str]:
            return True, '{"document": {}}'

        def close(self) -> None:
            pass

    monkeypatch.setattr("pmagent.service.client.requests_of", lambda _workspace: Asking())
    given = {"request": "r-1", "operator": "ada", "by_secret": True}
    ask_holder(Layout(workspace), "the holder", "pla.decide", given, 1.0)
    assert sent == ['{"request":"r-1","operator":"ada"}']
    with pytest.raises(NotFromHere):
        require_possible("the holder", "pla.decide", {**given, "secret": "s"})
    for words in ("disarm", "decide"):  # who stops something is not kept from it by a secret in their words
        told = {"request": f"r-{words}", "operator": "ada", "reason": f"ghp_{'a1B2' * 9}"}
        with nullcontext() if words == "disarm" else pytest.raises(NotFromHere):
            ask_holder(Layout(workspace), "the holder", f"pla.{words}", told, 1.0)
    assert "ghp_" not in "".join(sent)
    assert "r-disarm" in sent[-1]


def test_an_answer_that_is_long_in_coming_is_waited_for_and_one_that_nobody_gives_is_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float]()

    class Asking:
        taken = False

        def ask(self, *_: object) -> None:
            pass

        def reply(self, _id: str, seconds: float) -> tuple[bool, str | None]:
            waited.append(seconds)
            return self.taken, None

        def withdraw(self, _id: str) -> bool:
            return True

        def close(self) -> None:
            pass

    monkeypatch.setattr("pmagent.service.client.requests_of", lambda _workspace: Asking())
    asked = {"request": "r-1", "operator": "ada", "goal": "type: ls"}
    with pytest.raises(NotTaken):
        ask_holder(Layout(workspace), "the holder", "pla.propose", asked, 86_400.0)
    Asking.taken = True
    with pytest.raises(FarUnknown) as raised:  # of this workspace, nobody holds the log
        ask_holder(Layout(workspace), "the holder", "pla.propose", asked, 86_400.0)
    assert "--request r-1 asks again" in raised.value.hint
    assert waited == [REPLY_SECONDS, REPLY_SECONDS]


def test_a_request_that_was_lost_with_a_server_is_not_waited_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[str]()

    class Asking:
        def ask(self, *_: object) -> None:
            pass

        def reply(self, _id: str, _seconds: float) -> tuple[bool, None]:
            looked.append("")
            assert len(looked) < 9, "it is looked for without end"
            return False, None

        def withdraw(self, _id: str) -> bool:
            return False

        def close(self) -> None:
            pass

    monkeypatch.setattr("pmagent.service.client.requests_of", lambda _workspace: Asking())
    monkeypatch.setattr("pmagent.workspace.layout.Layout.store", StubStore())
    with pytest.raises(FarUnknown):
        ask_holder(Layout(workspace), "the holder", "kernel.refresh", {"request": "r-1"}, 3600.0)


class StubStore:
    """A log that somebody holds."""

    def holder(self) -> Holder:
        """See LogStore."""
        return Holder(live=True, elsewhere=True)
