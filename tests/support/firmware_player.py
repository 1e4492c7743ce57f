"""Plays vectors on the firmware. MicroPython runs this file as it is, so it keeps to what MicroPython has."""

from pmagent.firmware.core import Core
from pmagent.firmware.document import Unreadable, read, write
from pmagent.firmware.lines import LINE_MAX, LineReader, decode, encode
from pmagent.firmware.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pmagent.firmware.shapes import Sha256

DEVICE = ("device-0001", "00112233445566aa", "1.0.0", "c" * 64, "1.0.0", "POWER_ON")


def same(wanted: "Any", got: "Any") -> bool:
    """Whether ``got`` is what was wanted. An object that has the key "..." may have more than it says."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        names = [name for name in wanted if name != "..."]
        if "..." not in wanted and len(names) != len(got):
            return False
        return all(name in got and same(wanted[name], got[name]) for name in names)
    if isinstance(wanted, (list, tuple)) and isinstance(got, (list, tuple)):
        return len(wanted) == len(got) and all(same(wanted[at], got[at]) for at in range(len(got)))
    return type(wanted) is type(got) and wanted == got


def play(exchange: "dict[str, Any]", digest: "Sha256" = sha256) -> list[str]:
    """The differences in an exchange: texts, none when all is as it says."""
    core = Core(*DEVICE, sha256=digest)
    now = exchange.get("begin_ms", 0)
    machine: dict[str, Any] = {"killed": False, "dtr": True, "usb": True, "caps_lock": False, "room": 4096}
    heard_by_host = LineReader()
    wrong: list[str] = []
    for number, step in enumerate(exchange["steps"]):
        for name, value in list(machine.items()):
            machine[name] = step.get(name, value)
        received = b""
        for line in step.get("hear", []):
            received += line.encode() if isinstance(line, str) else encode(line)
        told: list[Any] = []
        reports: list[Any] = []
        for _ in range(step.get("rounds", 1)):
            now = (now + step.get("ms", 1)) % (1 << 29)
            done = core.step(now, received, **machine)
            received = b""
            if len(done.send) > machine["room"] or len(done.reports) > 1:
                wrong.append(f"step {number}: more than there is room for")
            told.extend(heard_by_host.feed(done.send))
            for report in done.reports:
                reports.append(report)
                core.reported(step.get("taken", True), step.get("why", ""))
        for what, wanted, got in (
            ("tell", step.get("tell", []), told),
            ("reports", step.get("reports", []), reports),
            ("led", step.get("led", False), done.led),
            ("feed", True, done.feed),
        ):
            if not same(wanted, got):
                wrong.append(differs(f"{exchange['name']}, step {number}: {what}", wanted, got))
    return wrong


def differs(what: str, wanted: "Any", got: "Any") -> str:
    """In words."""
    return f"{what}: wanted {wanted}, got {got}"


def frame(case: "dict[str, Any]") -> list[str]:
    """The differences in a frame."""
    line = case["line"]
    found = decode(line.encode()) if len(line) < LINE_MAX else None
    return [] if same(case.get("object"), found) else [differs(repr(line), case.get("object"), found)]


def stream(case: "dict[str, Any]") -> list[str]:
    """The differences in a stream: chunks of bytes, and the lines that they end."""
    reader = LineReader()
    found: list[Any] = []
    for chunk in case["chunks"]:
        found.extend(reader.feed(chunk.encode()))
    wanted = [line.get("object") for line in case["lines"]]
    return [] if same(wanted, found) else [differs(case["name"], wanted, found)]


def digested(case: "dict[str, Any]") -> list[str]:
    """The differences in a digest: canonical form and SHA-256."""
    wrong: list[str] = []
    try:
        canonical = write(read(case["json"].encode()))
    except Unreadable:
        return ["it is not read: " + case["json"]]
    if canonical != case["canonical"]:
        wrong.append(differs("canonical form", case["canonical"], canonical))
    if sha256(canonical.encode()) != case["digest"]:
        wrong.append("another digest of " + canonical)
    return wrong


def all_of(vectors: "dict[str, Any]") -> list[str]:
    """The differences in all vectors, by their names: frames, digests, exchanges."""
    wrong: list[str] = []
    for case in vectors["frames"]["lines"]:
        wrong.extend(frame(case))
    for case in vectors["frames"]["streams"]:
        wrong.extend(stream(case))
    for case in vectors["digests"]:
        wrong.extend(digested(case))
    for case in vectors["exchanges"]:
        wrong.extend(play(case))
    return wrong


def recorded(steps: "list[dict[str, Any]]", digest: "Sha256" = sha256) -> "list[Any]":
    """The output of a script: all bytes that were sent, and all reports with the number of their step."""
    core = Core(*DEVICE, sha256=digest)
    now, sent, reports = 0, [], []
    for number, step in enumerate(steps):
        now = (now + step["ms"]) % (1 << 29)
        done = core.step(now, step["bytes"].encode(), **step["machine"])
        sent.append(done.send.decode())
        for report in done.reports:
            reports.append([number, list(report)])
            core.reported(step["taken"])
    return ["".join(sent), reports]
