"""The demo's scenes: a session from the first look to typed text, and then each thing that must not come to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pmagent.events.event import time_after
from pmagent.events.log import now
from pmagent.pla.demo.stage import Device, Stage, Surprise

HELLO: Final = "echo hello, lab\n"
LONG: Final = "0123456789" * 40
GOAL_SHOWN: Final = 40


def play(folder: Path, show: Callable[[str], None]) -> None:
    """Play all of it in ``folder``, an empty one. Raises Surprise at the first thing that is not as expected."""
    stage = Stage(folder, show)
    stage.build()
    _heading(stage, "a device: the firmware's core behind a pseudo terminal, in a process of its own")
    with _device(stage) as device, stage.daemon():
        stage.await_event("hid.linked", 0)
        stage.expect("the device is linked", "pretend-device", stage.ask("pla.status")["device"]["device_id"])
        _session(stage, device)
        for scene in (_used_approval, _stale, _changed_bytes, _lost_answer, _reset_while_typing, _killed):
            scene(stage, device)
        device.close()
        _other_contract(stage)
        stage.run("pla", "end")
    _proof(stage)


def _session(stage: Stage, device: Device) -> None:
    _heading(stage, "look, propose, approve, type")
    stage.run("pla", "observe")
    stage.run("pla", "mode", "EXECUTE", expect=1)
    stage.run("pla", "mode", "SUGGEST")
    stage.run("pla", "propose", 'type: "echo hello, lab\\n"', "--why", "to see that the terminal answers")
    stage.run("pla", "mode", "EXECUTE")
    digest = stage.ask("pla.show")["digest"]
    stage.run("pla", "approve", "--digest", digest, expect=1)
    stage.expect("nothing is typed before the device is armed", "", device.typed)
    stage.run("pla", "arm")
    stage.run("pla", "approve", "--digest", digest)
    heard = [op for op in ("arm", "prepare", "commit") if device.heard(op)]
    stage.expect("the device heard", ["arm", "prepare", "commit"], heard)
    stage.expect("orders to type", 1, device.heard("commit"))
    stage.expect("it typed", HELLO, device.typed)
    stage.run("pla", "verify-log")


def _used_approval(stage: Stage, device: Device) -> None:
    _heading(stage, "an approval is used once")
    done = stage.ask("pla.list", count=1)["proposals"][0]
    before = device.typed
    stage.run("pla", "approve", done["proposal_id"], "--digest", done["digest"], expect=1)
    stage.expect("nothing more is typed", before, device.typed)


def _stale(stage: Stage, device: Device) -> None:
    _heading(stage, "a stale approval counts for nothing: one from two minutes ago, and one of what has expired")
    before, after = device.typed, stage.position()
    stage.set(proposal_seconds="0.5")
    stale = _proposed(stage, "type: too late")
    stage.set()
    stage.await_event("pla.proposal_closed", after)
    stage.run("pla", "approve", stale["proposal_id"], "--digest", stale["digest"], expect=1)
    fresh = _proposed(stage, "type: too late")
    decision = {
        "proposal_id": fresh["proposal_id"], "decision": "APPROVED", "digest": fresh["digest"], "operator_id": "ada",
        "timestamp": time_after(now(), -120.0),
    }  # fmt: skip
    document = stage.file("decision.json", json.dumps(decision))
    stage.run("pla", "approve", "--document", document, expect=1)
    stage.run("pla", "reject", "--reason", "it was decided two minutes too early")
    stage.expect("nothing is typed", before, device.typed)


def _changed_bytes(stage: Stage, device: Device) -> None:
    _heading(stage, "an approval holds for the bytes that were shown, and for no others")
    before = device.typed
    first = _proposed(stage, "type: ls")
    stage.run("pla", "reject", first["proposal_id"], "--reason", "something else is needed")
    second = _proposed(stage, "type: rm")
    stage.run("pla", "approve", second["proposal_id"], "--digest", first["digest"], expect=1)
    stage.run("pla", "reject", second["proposal_id"], "--reason", "only to show it")
    stage.expect("nothing is typed", before, device.typed)


def _lost_answer(stage: Stage, device: Device) -> None:
    _heading(stage, "the answer to the order to type is lost: the device is asked, and typing is not repeated")
    before, commits = device.typed, device.heard("commit")
    _does(stage, device, "swallow", "the device's next answer to an order to type gets lost")
    _approved(stage, "type: once ", expect=0)
    stage.expect("it typed, once", before + "once ", device.typed)
    stage.expect("orders to type", commits + 1, device.heard("commit"))


def _reset_while_typing(stage: Stage, device: Device) -> None:
    _heading(stage, "the device starts anew while it types: nobody can tell how much was typed, and it is not repeated")
    before, commits = device.typed, device.heard("commit")
    after = stage.position()
    long = _proposed(stage, f"type: {LONG}")
    device.pass_over()
    approving = stage.start("pla", "approve", long["proposal_id"], "--digest", long["digest"])
    device.wait(lambda told: bool(told.get("text")))
    _does(stage, device, "reset", "the device starts anew")
    stage.finish(approving, expect=1)
    typed = device.typed.removeprefix(before)
    stage.expect("it typed a beginning of what was approved", LONG[: min(len(typed), len(LONG) - 1)], typed)
    stage.expect("how the log has it", "unknown", _outcome(stage, long["proposal_id"]))
    stage.await_event("hid.linked", after)
    stage.expect("the mode", "OBSERVE", stage.ask("pla.status")["mode"])
    _again(stage)
    _approved(stage, "type: !", expect=0)
    stage.expect("it goes on behind what is there, with what is new", before + typed + "!", device.typed)
    stage.expect("orders to type", commits + 2, device.heard("commit"))


def _killed(stage: Stage, device: Device) -> None:
    _heading(stage, "the kill switch is hit while it types")
    before, after = device.typed, stage.position()
    long = _proposed(stage, f"type: {LONG}")
    device.pass_over()
    approving = stage.start("pla", "approve", long["proposal_id"], "--digest", long["digest"])
    device.wait(lambda told: bool(told.get("text")))
    _does(stage, device, "kill", "the kill switch opens")
    stage.finish(approving, expect=1)
    typed = device.typed
    part = typed.removeprefix(before)
    stage.expect("it stopped on the way", LONG[: min(len(part), len(LONG) - 1)], part)
    stage.await_event("pla.mode_changed", after)
    stage.expect("the mode", "OBSERVE", stage.ask("pla.status")["mode"])
    stage.await_event("hid.reported", after, kill_switch_state="DISABLED")  # it comes once a second
    stage.run("pla", "mode", "SUGGEST")
    stage.run("pla", "mode", "EXECUTE", expect=1)
    _does(stage, device, "restore", "the kill switch closes")
    refused = stage.run("pla", "mode", "EXECUTE", expect=1)
    why = "the kill switch is DISABLED"
    stage.expect("closing the switch is not enough", why, why if why in refused.out else refused.out)
    stage.expect("nothing more is typed", typed, device.typed)


def _other_contract(stage: Stage) -> None:
    _heading(stage, "a device of another contract is linked, and is told to type nothing")
    after, before = stage.position(), stage.typed.read_text("ascii")
    with _device(stage, "--contract-version", "2.0.0") as device:
        stage.await_event("hid.linked", after)
        stage.run("pla", "mode", "SUGGEST")
        stage.run("pla", "mode", "EXECUTE", expect=1)
        stage.expect("orders to arm, prepare or commit", 0, sum(map(device.heard, ("arm", "prepare", "commit"))))
        stage.expect("nothing is typed", before, device.typed)


def _proof(stage: Stage) -> None:
    _heading(stage, "the log proves it, and reproduces it")
    for words in (("pla", "verify-log"), ("log", "verify"), ("replay",), ("rebuild", "--check")):
        stage.run(*words)


def _does(stage: Stage, device: Device, word: str, text: str) -> None:
    """Something happens to the device."""
    device.do(word)
    stage.say(f"  ({text})")


def _proposed(stage: Stage, goal: str) -> dict[str, Any]:
    """Propose it with a command, and tell the answer in short."""
    short = goal if len(goal) <= GOAL_SHOWN else f"{goal[:GOAL_SHOWN]}…"
    stage.say(f"$ pmagent pla propose '{short}'")
    document: dict[str, Any] = stage.run("pla", "propose", goal, "--format", "json", quiet=True).document
    stage.say(f"  ▸ open: {document['proposal_id']}, digest {document['digest'][:16]}…")
    return document


def _approved(stage: Stage, goal: str, *, expect: int) -> None:
    proposed = _proposed(stage, goal)
    stage.run("pla", "approve", proposed["proposal_id"], "--digest", proposed["digest"], expect=expect)


def _outcome(stage: Stage, proposal_id: str) -> str:
    return str(stage.ask("pla.show", proposal_id=proposal_id)["outcome"])


def _again(stage: Stage) -> None:
    """Up the ladder once more."""
    stage.run("pla", "mode", "SUGGEST")
    stage.run("pla", "mode", "EXECUTE")
    stage.run("pla", "arm")


def _heading(stage: Stage, text: str) -> None:
    stage.say()
    stage.say(f"-- {text}")


@contextmanager
def _device(stage: Stage, *options: str) -> Iterator[Device]:
    device = Device(stage.link, stage.typed, *options)
    try:
        yield device
    finally:
        device.close()


__all__ = ["Surprise", "play"]
