"""How effects end, on a real event loop: whatever a performer does, with exactly one fact."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from pmagent.actors.core.actor import Io
from pmagent.actors.core.intake import Intake
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.payload import Payload
from pmagent.events.blobs import BlobStore
from pmagent.events.event import Draft, Event
from pmagent.events.redact import MASK, Redactor
from tests.support.cases import each
from tests.support.live import REQUESTS, SECRET, Deaf, Said, Told, forever, live, performing
from tests.support.memory_disk import MemoryDisk
from tests.support.toys import Done, Poked, permit_for


async def test_an_outcome_is_a_fact_caused_by_the_request() -> None:
    async def perform(event: Event, _io: Io) -> Payload:
        return Done(n=event.data.n)

    async with live(performing(perform)) as rig:
        for word in REQUESTS:
            (request,) = await rig.tell(word)
            assert await rig.end_of(request) == Done(n=request.data.n)
            outcome = rig.history[-1]
            assert (outcome.id, outcome.correlation) == (f"{request.position}.outcome", request.correlation)
        assert not rig.runtime.engine.effects.open


async def test_an_exception_is_recorded_by_type_and_place_and_not_by_its_text() -> None:
    async def perform(_event: Event, _io: Io) -> Payload:
        raise ConnectionError(f"cannot log in with {SECRET}")

    async with live(performing(perform)) as rig:
        (request,) = await rig.tell("once")
        ended = await rig.end_of(request)
        assert isinstance(ended, EffectFailed)
        assert ended.error == "ConnectionError"
        assert "perform" in ended.place
        assert b"log in" not in b"".join(event.raw for event in rig.history)


async def test_an_error_of_the_system_is_recorded_with_its_name_and_without_what_it_was_about() -> None:
    async def perform(_event: Event, _io: Io) -> Payload:
        raise OSError(errno.ENOSPC, "No space left", f"/home/{SECRET}")

    async with live(performing(perform)) as rig:
        (request,) = await rig.tell("once")
        ended = await rig.end_of(request)
        assert isinstance(ended, EffectFailed)
        assert ended.error == "OSError ENOSPC"
        assert b"No space" not in b"".join(event.raw for event in rig.history)


async def test_a_performer_whose_own_waiting_is_cancelled_has_failed_and_frees_its_place() -> None:
    """A library may raise CancelledError though nobody stopped the effect."""

    async def perform(_event: Event, _io: Io) -> Payload:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future
        raise AssertionError

    async with live(performing(perform)) as rig:
        requests = await rig.tell("once", "once", "once")
        for request in requests:
            assert await rig.end_of(request) == EffectFailed(
                request=request.position, error="CancelledError", place="rt.once_requested"
            )


def _deep() -> Payload:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    return Told(words=nested)


@each(
    "returned", [None, {"n": 1}, "done", msgspec.structs.replace(Done(n=1), n="one"), Told(words=["\udcff"]), _deep()]
)
async def test_what_is_no_payload_of_its_type_is_the_performers_failure(returned: Any) -> None:
    async def perform(_event: Event, _io: Io) -> Any:
        return returned

    async with live(performing(perform)) as rig:
        for word in ("once", "bulky"):
            (request,) = await rig.tell(word)
            assert isinstance(await rig.end_of(request), EffectFailed)


class FullDisk(Intake):
    """Has no room for what is said, however often it is asked, and for nothing else that is large."""

    def _draft(self, payload: Any, *more: Any) -> Draft:
        if isinstance(payload, Said):
            raise OSError(errno.ENOSPC, "No space left", f"/home/{SECRET}")
        return super()._draft(payload, *more)


@each("word", ["once", "again", "bulky"])
async def test_an_outcome_that_cannot_be_kept_is_unknown_and_names_the_error(word: str) -> None:
    async def perform(_event: Event, _io: Io) -> Payload:
        return Said(text="it is done")

    async with live(performing(perform)) as rig:
        rig.runtime.intake = FullDisk(Redactor([SECRET]), BlobStore(MemoryDisk(), "/blobs"))
        (request,) = await rig.tell(word)
        assert await rig.end_of(request) == EffectInterrupted(request=request.position, reason="unrecorded ENOSPC")
        assert rig.runtime.failure is None
        (other,) = await rig.tell(word)
        assert isinstance(await rig.end_of(other), EffectInterrupted), "it goes on"


@each("word", ["short", "once"])
async def test_what_goes_wrong_in_an_end_that_a_timer_brings_ends_the_run(word: str) -> None:
    """The loop would only log it, and the effect would stay open for ever."""

    async def run() -> None:
        deaf = Deaf()

        def broken(*_: Any) -> None:
            deaf.release.set()
            raise KeyError("a bug")

        async with live(performing(deaf)) as rig:
            setattr(rig.runtime._scheduler, "elapsed", broken)  # noqa: B010
            await rig.tell(word)
            await deaf.started.wait()
            if word == "once":
                await rig.tell("cancel")
            await anyio.sleep_forever()  # the error cancels it

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmagent.actors.core.scheduler.STOP_SECONDS", 0.01)
        with pytest.raises(BaseExceptionGroup) as raised:
            await run()
    assert raised.value.subgroup(KeyError) is not None


async def test_an_outcome_of_another_type_than_the_request_declares_is_the_performers_failure() -> None:
    async def perform(_event: Event, _io: Io) -> Payload:
        return Poked(n=1)

    async with live(performing(perform)) as rig:
        for word in ("once", "bulky"):
            (request,) = await rig.tell(word)
            assert (await rig.end_of(request)).error == "NotItsOutcome"


async def test_a_request_without_a_performer_fails() -> None:
    async with live({}) as rig:
        (request,) = await rig.tell("once")
        ended = await rig.end_of(request)
        assert (ended.error, ended.place) == ("NoPerformer", "rt.once_requested")


async def test_secrets_do_not_get_into_the_log_by_an_outcome() -> None:
    async def perform(_event: Event, _io: Io) -> Payload:
        return Said(text=f"the password is: {SECRET}")

    async with live(performing(perform)) as rig:
        (request,) = await rig.tell("once")
        assert MASK in (await rig.end_of(request)).text
        assert SECRET.encode() not in b"".join(event.raw for event in rig.history)


async def test_past_its_limit_an_effect_has_timed_out() -> None:
    async with live(performing(forever)) as rig:
        (request,) = await rig.tell("short")
        assert await rig.end_of(request) == EffectTimedOut(request=request.position, limit_s=0.02)


async def test_past_its_limit_it_has_timed_out_also_if_the_performer_goes_on_and_answers_late() -> None:
    deaf = Deaf()
    async with live(performing(deaf)) as rig:
        (request,) = await rig.tell("short")
        assert await rig.end_of(request) == EffectTimedOut(request=request.position, limit_s=0.02)
        deaf.release.set()
        await deaf.returned.wait()
        await rig.runtime.append(Poked(n=1), "behind", "tests")
        assert len(rig.ends(request)) == 1


async def test_a_cancelled_performer_ends_and_an_actor_can_cancel_only_once() -> None:
    async with live(performing(forever)) as rig:
        (request,) = await rig.tell("once")
        await rig.tell("cancel")
        assert await rig.end_of(request) == EffectCancelled(request=request.position, reason="cancel_requested")
        await rig.tell("cancel")
        await rig.runtime.append(Poked(n=1), "behind", "tests")
        assert len(rig.ends(request)) == 1


async def test_a_performer_that_does_not_heed_cancelling_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.actors.core.scheduler.STOP_SECONDS", 0.02)
    deaf = Deaf()
    async with live(performing(deaf)) as rig:
        (request,) = await rig.tell("once")
        await deaf.started.wait()
        await rig.tell("cancel")
        assert await rig.end_of(request) == EffectCancelled(request=request.position, reason="cancel_requested")
        deaf.release.set()
        await deaf.returned.wait()
        await rig.runtime.append(Poked(n=1), "behind", "tests")
        assert len(rig.ends(request)) == 1


async def test_what_is_cancelled_before_it_could_start_is_never_performed() -> None:
    begun: list[int] = []

    async def perform(event: Event, _io: Io) -> Payload:
        begun.append(event.position)
        return Done(n=0)

    async with live(performing(perform)) as rig:
        (request,) = await rig.tell("once", "cancel")
        assert await rig.end_of(request) == EffectCancelled(request=request.position, reason="cancel_requested")
    assert begun == []


async def test_a_revoked_permit_ends_what_runs_under_it() -> None:
    async with live(performing(forever)) as rig:
        runtime = rig.runtime
        granted = await runtime.append(permit_for("boss", uses=9), "permit", "tests")
        assert granted is not None, "a new fact"
        (request,) = await rig.tell("fetch")
        await runtime.append(Poked(n=7), "seven", "tests")  # the grantor revokes
        assert await rig.end_of(request) == EffectCancelled(request=request.position, reason="permit_revoked")


async def test_a_held_outward_effect_starts_when_released_unless_its_permit_was_revoked_meanwhile() -> None:
    begun: list[int] = []

    async def perform(event: Event, _io: Io) -> Payload:
        begun.append(event.position)
        return Done(n=0)

    async with live(performing(perform), hold_outward=True) as rig:
        runtime = rig.runtime
        await runtime.append(permit_for("boss", uses=9), "permit", "tests")
        (revoked,) = await rig.tell("fetch")
        (inward,) = await rig.tell("once")
        assert await rig.end_of(inward) == Done(n=0)
        await runtime.append(Poked(n=7), "seven", "tests")  # the grantor revokes
        assert await rig.end_of(revoked) == EffectCancelled(request=revoked.position, reason="permit_revoked")
        await runtime.append(permit_for("boss", uses=9), "permit-2", "tests")
        (kept,) = await rig.tell("fetch")
        assert begun == [inward.position]
        runtime.release_outward()
        assert await rig.end_of(kept) == Done(n=0)
    assert begun == [inward.position, kept.position]


async def test_what_the_gate_refuses_is_never_performed() -> None:
    begun: list[int] = []

    async def perform(event: Event, _io: Io) -> Payload:
        begun.append(event.position)
        return Done(n=0)

    async with live(performing(perform)) as rig:
        (request,) = await rig.tell("fetch")
        refused = [event for event in rig.history if event.type == "effect.refused"]
        assert [event.data.request for event in refused] == [request.position]
        assert rig.ends(request) == []
    assert begun == []


async def test_at_most_so_many_run_at_once_and_the_others_follow_in_order() -> None:
    running, most, order = 0, 0, list[int]()

    async def perform(event: Event, _io: Io) -> Payload:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(event.position)
        await anyio.lowlevel.checkpoint()
        running -= 1
        return Done(n=event.data.n)

    async with live(performing(perform)) as rig:
        requests = await rig.tell(*["once"] * 9)
        for request in requests:
            await rig.end_of(request)
    assert most == 2
    assert order == [request.position for request in requests]
