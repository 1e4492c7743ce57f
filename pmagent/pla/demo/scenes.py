"""The demo's scenes: a session from the first look to typed text, and then each thing that must not come to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pmagent.actors.pla.switch import said
from pmagent.events.event import time_after
from pmagent.events.log import now
from pmagent.pla.demo.environment import DemoEnvironment, Device

HELLO: Final = "echo hello, lab\n"
LONG: Final = "0123456789" * 40
GOAL_SHOWN: Final = 40


def play(folder: Path, show: Callable[[str], None]) -> None:
    """Play all of it in ``folder``, an empty one. Raises UnexpectedResult at the first difference."""
    demo = DemoEnvironment(folder, show)
    demo.build()
    _heading(demo, "a device: the firmware's core behind a pseudo terminal, in a process of its own")
    with _device(demo) as device, demo.daemon():
        demo.await_event("hid.linked", 0)
        demo.expect("the device is linked", "pretend-device", demo.ask("pla.status")["device"]["device_id"])
        _session(demo, device)
        for scene in (_used_approval, _stale, _changed_bytes, _lost_answer, _reset_while_typing, _killed):
            scene(demo, device)
        device.close()
        _other_contract(demo)
        demo.run("pla", "end")
    _proof(demo)


def _session(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "look, propose, approve, type")
    demo.run("pla", "observe")
    demo.run("pla", "mode", "EXECUTE", expect=1)
    demo.run("pla", "mode", "SUGGEST")
    demo.run("pla", "propose", 'type: "echo hello, lab\\n"', "--why", "to see that the terminal answers")
    demo.run("pla", "mode", "EXECUTE")
    digest = demo.ask("pla.show")["digest"]
    demo.run("pla", "approve", "--digest", digest, expect=1)
    demo.expect("nothing is typed before the device is armed", "", device.typed)
    demo.run("pla", "arm")
    demo.run("pla", "approve", "--digest", digest)
    heard = [op for op in ("arm", "prepare", "commit") if device.heard(op)]
    demo.expect("the device heard", ["arm", "prepare", "commit"], heard)
    demo.expect("orders to type", 1, device.heard("commit"))
    demo.expect("it typed", HELLO, device.typed)
    demo.run("pla", "verify-log")


def _used_approval(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "an approval is used once")
    done = demo.ask("pla.list", count=1)["proposals"][0]
    before = device.typed
    demo.run("pla", "approve", done["proposal_id"], "--digest", done["digest"], expect=1)
    demo.expect("nothing more is typed", before, device.typed)


def _stale(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "a stale approval counts for nothing: one from two minutes ago, and one of what has expired")
    before, after = device.typed, demo.position()
    demo.set(proposal_seconds="0.5")
    stale = _proposed(demo, "type: too late")
    demo.set()
    demo.await_event("pla.proposal_closed", after)
    demo.run("pla", "approve", stale["proposal_id"], "--digest", stale["digest"], expect=1)
    fresh = _proposed(demo, "type: too late")
    decision = {
        "proposal_id": fresh["proposal_id"], "decision": "APPROVED", "digest": fresh["digest"], "operator_id": "ada",
        "timestamp": time_after(now(), -120.0),
    }  # fmt: skip
    document = demo.file("decision.json", json.dumps(decision))
    demo.run("pla", "approve", "--document", document, expect=1)
    demo.run("pla", "reject", "--reason", "it was decided two minutes too early")
    demo.expect("nothing is typed", before, device.typed)


def _changed_bytes(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "an approval holds for the bytes that were shown, and for no others")
    before = device.typed
    first = _proposed(demo, "type: ls")
    demo.run("pla", "reject", first["proposal_id"], "--reason", "something else is needed")
    second = _proposed(demo, "type: rm")
    demo.run("pla", "approve", second["proposal_id"], "--digest", first["digest"], expect=1)
    demo.run("pla", "reject", second["proposal_id"], "--reason", "only to show it")
    demo.expect("nothing is typed", before, device.typed)


def _lost_answer(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "the answer to the order to type is lost: the device is asked, and typing is not repeated")
    before, commits = device.typed, device.heard("commit")
    _does(demo, device, "swallow", "the device's next answer to an order to type gets lost")
    _approved(demo, "type: once ", expect=0)
    demo.expect("it typed, once", before + "once ", device.typed)
    demo.expect("orders to type", commits + 1, device.heard("commit"))


def _reset_while_typing(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "the device starts anew while it types: nobody can tell how much was typed, and it is not repeated")
    before, commits = device.typed, device.heard("commit")
    after = demo.position()
    long = _proposed(demo, f"type: {LONG}")
    device.pass_over()
    approving = demo.start("pla", "approve", long["proposal_id"], "--digest", long["digest"])
    device.wait(lambda message: bool(message.get("text")))
    _does(demo, device, "reset", "the device starts anew")
    demo.finish(approving, expect=1)
    typed = device.typed.removeprefix(before)
    demo.expect("it typed a beginning of what was approved", LONG[: min(len(typed), len(LONG) - 1)], typed)
    demo.expect("how the log has it", "unknown", _outcome(demo, long["proposal_id"]))
    demo.await_event("hid.linked", after)
    demo.expect("the mode", "OBSERVE", demo.ask("pla.status")["mode"])
    _again(demo)
    _approved(demo, "type: !", expect=0)
    demo.expect("it goes on behind what is there, with what is new", before + typed + "!", device.typed)
    demo.expect("orders to type", commits + 2, device.heard("commit"))


def _killed(demo: DemoEnvironment, device: Device) -> None:
    _heading(demo, "the kill switch is hit while it types")
    before, after = device.typed, demo.position()
    long = _proposed(demo, f"type: {LONG}")
    device.pass_over()
    approving = demo.start("pla", "approve", long["proposal_id"], "--digest", long["digest"])
    device.wait(lambda message: bool(message.get("text")))
    _does(demo, device, "kill", "the kill switch opens")
    demo.finish(approving, expect=1)
    typed = device.typed
    part = typed.removeprefix(before)
    demo.expect("it stopped on the way", LONG[: min(len(part), len(LONG) - 1)], part)
    demo.await_event("pla.mode_changed", after)
    demo.expect("the mode", "OBSERVE", demo.ask("pla.status")["mode"])
    demo.await_event("hid.reported", after, kill_switch_state="DISABLED")  # it comes once a second
    demo.run("pla", "mode", "SUGGEST")
    demo.run("pla", "mode", "EXECUTE", expect=1)
    _does(demo, device, "restore", "the kill switch closes")
    refused = demo.run("pla", "mode", "EXECUTE", expect=1)
    why = said("the kill switch is DISABLED")
    demo.expect("closing the switch is not enough", why, why if why in refused.out else refused.out)
    demo.expect("nothing more is typed", typed, device.typed)


def _other_contract(demo: DemoEnvironment) -> None:
    _heading(demo, "a device of another contract is linked, and is told to type nothing")
    after, before = demo.position(), demo.typed.read_text("ascii")
    with _device(demo, "--contract-version", "2.0.0") as device:
        demo.await_event("hid.linked", after)
        demo.run("pla", "mode", "SUGGEST")
        demo.run("pla", "mode", "EXECUTE", expect=1)
        demo.expect("orders to arm, prepare or commit", 0, sum(map(device.heard, ("arm", "prepare", "commit"))))
        demo.expect("nothing is typed", before, device.typed)


def _proof(demo: DemoEnvironment) -> None:
    _heading(demo, "the log proves it, and reproduces it")
    for words in (("pla", "verify-log"), ("log", "verify"), ("replay",), ("rebuild", "--check")):
        demo.run(*words)


def _does(demo: DemoEnvironment, device: Device, word: str, text: str) -> None:
    """Something happens to the device."""
    device.do(word)
    demo.say(f"  ({text})")


def _proposed(demo: DemoEnvironment, goal: str) -> dict[str, Any]:
    """Propose it with a command, and tell the answer in short."""
    short = goal if len(goal) <= GOAL_SHOWN else f"{goal[:GOAL_SHOWN]}…"
    demo.say(f"$ pmagent pla propose '{short}'")
    document: dict[str, Any] = demo.run("pla", "propose", goal, "--format", "json", quiet=True).document
    demo.say(f"  ▸ open: {document['proposal_id']}, digest {document['digest'][:16]}…")
    return document


def _approved(demo: DemoEnvironment, goal: str, *, expect: int) -> None:
    proposed = _proposed(demo, goal)
    demo.run("pla", "approve", proposed["proposal_id"], "--digest", proposed["digest"], expect=expect)


def _outcome(demo: DemoEnvironment, proposal_id: str) -> str:
    return str(demo.ask("pla.show", proposal_id=proposal_id)["outcome"])


def _again(demo: DemoEnvironment) -> None:
    """Up the ladder once more."""
    demo.run("pla", "mode", "SUGGEST")
    demo.run("pla", "mode", "EXECUTE")
    demo.run("pla", "arm")


def _heading(demo: DemoEnvironment, text: str) -> None:
    demo.say()
    demo.say(f"-- {text}")


@contextmanager
def _device(demo: DemoEnvironment, *options: str) -> Iterator[Device]:
    device = Device(demo.link, demo.typed, *options)
    try:
        yield device
    finally:
        device.close()
