"""Facts for the log from what the line has heard: a device is linked, something changed of it, it is lost; pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.actors.pla.wire.messages import Broken, Heard, Hello, Lost, Status
from pmagent.contracts.hid import HidLinked, HidLost, HidReported
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla_events import NAME_CHARS_MAX, PlaContractBroken

_UNIMPORTANT: Final = {"error_count": 0, "action_count": 0}
"""Fields of a status that may change without a fact."""


class Reporter:
    """Turns what is heard on one link after the other into facts. A report that says what the one before said is none,
    and neither is a break of contract that was told, until a link was ``fine``."""

    def __init__(self) -> None:
        self._port = ""
        self._hello: dict[str, Any] | None = None
        self._reported: HidReported | None = None
        self._broken: set[tuple[str, str]] = set()
        self.greeted = False
        """Whether the device has answered hello on this link."""

    def begin(self, port: str) -> None:
        """A link begins on this port."""
        self._port, self._hello, self._reported = port, None, None
        self.greeted = False

    def fine(self) -> None:
        """The link has stood for a while: should it break its contract now, that is news."""
        self._broken.clear()

    def facts(self, heard: list[Heard]) -> list[Payload]:
        """Its facts for the log."""
        return [fact for one in heard for fact in self._fact(one)]

    def _fact(self, heard: Heard) -> list[Payload]:
        match heard:
            case Hello():
                self._hello, self.greeted = heard.document, True
                return [_linked(heard, self._port)]
            case Status() if self._hello is not None:
                report = _reported(heard.document, self._hello["boot_id"])
                if self._reported is not None and _same(report, self._reported):
                    return []
                self._reported = report
                return [report]
            case Lost(code=code, text=text) if self._hello is not None:
                boot_id, self._hello = self._hello["boot_id"], None
                return [HidLost(boot_id=boot_id, code=code, text=text)]
            case Broken(contract=contract, kind=kind) if (contract, kind) not in self._broken:
                self._broken.add((contract, kind))
                return [_contract_broken(heard, self._port)]
        return []


def _linked(hello: Hello, port: str) -> HidLinked:
    document = hello.document
    return HidLinked(
        device_id=document["device_id"], boot_id=document["boot_id"], port=port,
        contract_version=document["contract_version"], contract_hash=document["contract_hash"],
        firmware_version=document["firmware_version"], reset_reason=document["reset_reason"],
        kill_switch_state=document["kill_switch_state"], compatible=hello.compatible, text=hello.text,
        practice=document.get("practice", False),
    )


def _reported(status: dict[str, Any], boot_id: str) -> HidReported:
    error = status.get("error_state", {})
    return HidReported(
        boot_id=boot_id, mode=status["mode"], led_state=status["led_state"],
        kill_switch_state=status["kill_switch_state"], error_code=error.get("error_code", "NONE"),
        error_message=error.get("error_message", ""), error_count=error.get("error_count", 0),
        action_count=status.get("action_count", 0), caps_lock=status.get("caps_lock", False),
    )


def _same(one: HidReported, other: HidReported) -> bool:
    return msgspec.structs.replace(one, **_UNIMPORTANT) == msgspec.structs.replace(other, **_UNIMPORTANT)


def _contract_broken(broken: Broken, port: str) -> PlaContractBroken:
    return PlaContractBroken(
        contract=broken.contract, kind=broken.kind, pointer=broken.pointer[:NAME_CHARS_MAX], text=broken.text[:2000],
        by=port[-NAME_CHARS_MAX:], channel="daemon",
    )
