"""While nobody holds the line open nothing is heard of it."""

from __future__ import annotations

from hashlib import sha256

from pmagent.firmware.core import Core
from pmagent.firmware.lines import encode

BOOT = "00112233445566ff"


def test_what_comes_while_the_line_is_closed_is_not_heard() -> None:
    core = Core(
        "device-0001", BOOT, "1.0.0", "5c" * 32, "1.0.0", "POWER_ON", sha256=lambda data: sha256(data).hexdigest()
    )
    hello = {
        "n": 1, "op": "hello", "contract_version": "1.0.0", "contract_hash": "5c" * 32, "time": "2026-11-22T09:00:00Z",
    }  # fmt: skip
    arm = {"n": 2, "op": "arm", "boot_id": BOOT, "lease_ms": 2000}
    for now in range(0, 100, 10):
        received = encode(hello) + encode(arm) if now == 50 else b""
        core.step(now, received, killed=False, dtr=False, usb=True, caps_lock=False, room=64)
    assert not core.armed
