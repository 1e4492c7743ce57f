"""Which port is the device's, and which of the things it says are facts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pmagent.actors.pla.line.discovery import (
    PRODUCT,
    Attached,
    PortUnusable,
    Wanted,
    attached,
    attached_at,
    chosen,
    find,
    held_to,
)
from pmagent.actors.pla.wire.messages import Broken, Ended, Hello, Lost, Status
from pmagent.actors.pla.wire.reports import Reporter
from pmagent.contracts.hid import HidLinked, HidLost, HidReported
from pmagent.contracts.pla_events import PlaContractBroken
from tests.support.cases import each

ONE = Attached(path="/dev/ttyACM0", serial="E66", product=PRODUCT, where="/sys/1-1")
TWO = Attached(path="/dev/ttyACM1", serial="E77", product=PRODUCT, where="/sys/1-2")
MODEM = Attached(path="/dev/ttyACM2", serial="M1", product="Modem", where="/sys/1-3")
ADAPTER = Attached(path="/dev/ttyUSB0", serial="A5XK", product="FT232R USB UART", where="/sys/1-4")

HELLO: dict[str, Any] = {
    "device_id": "pla-e66", "boot_id": "00" * 8, "contract_version": "1.0.0", "contract_hash": "ab" * 32,
    "firmware_version": "1.0.0", "reset_reason": "POWER_ON", "kill_switch_state": "ARMED",
}  # fmt: skip
STATUS: dict[str, Any] = {"mode": "OBSERVE", "led_state": False, "kill_switch_state": "ARMED", "uptime_seconds": 1}


def reporter() -> Reporter:
    """One with a device."""
    made = Reporter()
    made.begin("/dev/ttyACM0")
    [linked] = made.facts([Hello(HELLO, compatible=True, text="")])
    assert isinstance(linked, HidLinked)
    return made


# --- ports ----------------------------------------------------------------------------------------------------------


def test_the_device_is_found_by_what_usb_says_and_not_by_its_name() -> None:
    assert chosen(Wanted(), [MODEM, ONE]) == ONE
    assert chosen(Wanted(serial="E77"), [ONE, TWO, MODEM]) == TWO


def test_of_two_devices_none_is_taken() -> None:
    with pytest.raises(PortUnusable) as raised:
        chosen(Wanted(), [TWO, ONE])
    assert raised.value.code == "several"
    assert raised.value.message == "2 devices are plugged in (serial numbers: E66, E77)"


@each("ports", [[], [MODEM]])
def test_what_calls_itself_otherwise_is_no_device(ports: list[Attached]) -> None:
    with pytest.raises(PortUnusable) as raised:
        chosen(Wanted(), ports)
    assert raised.value.code == "missing"


def test_a_device_with_another_serial_number_is_not_the_wanted_one() -> None:
    with pytest.raises(PortUnusable, match="with serial number E99"):
        chosen(Wanted(serial="E99"), [ONE, TWO])
    with pytest.raises(PortUnusable) as raised:
        held_to(Wanted(path="/dev/ttyACM0", serial="E77"), ONE)
    assert raised.value.code == "another"


def test_a_named_port_that_calls_itself_otherwise_is_taken_by_its_serial_number_only() -> None:
    with pytest.raises(PortUnusable, match="calls itself 'Modem', not 'PLA keyboard'"):
        held_to(Wanted(path="/dev/ttyACM2"), MODEM)
    assert held_to(Wanted(path="/dev/ttyACM2", serial="M1"), MODEM) == MODEM


def test_an_adapter_is_found_by_its_serial_number_whatever_it_calls_itself() -> None:
    assert chosen(Wanted(serial="A5XK"), [ONE, MODEM, ADAPTER]) == ADAPTER
    assert chosen(Wanted(), [ONE, MODEM, ADAPTER]) == ONE
    assert held_to(Wanted(path="/dev/ttyUSB0", serial="A5XK"), ADAPTER) == ADAPTER
    for ports in ([], [ONE, MODEM]):
        with pytest.raises(PortUnusable, match="no device with serial number A5XK") as raised:
            chosen(Wanted(serial="A5XK"), ports)
        assert raised.value.code == "missing"


def test_of_adapters_that_are_all_alike_and_of_one_s_many_ports_none_is_taken() -> None:
    twin = msgspec.structs.replace(ADAPTER, path="/dev/ttyUSB1", where="/sys/1-5")
    with pytest.raises(PortUnusable, match="2 devices are plugged in") as raised:
        chosen(Wanted(serial="A5XK"), [ADAPTER, twin])
    assert raised.value.code == "several"
    other_port = msgspec.structs.replace(ADAPTER, path="/dev/ttyUSB1")
    with pytest.raises(PortUnusable, match="the adapter with serial number A5XK has 2 ports") as raised:
        chosen(Wanted(serial="A5XK"), [ADAPTER, other_port])
    assert raised.value.code == "several"


def test_an_adapter_is_taken_by_a_name_that_lasts_or_by_the_device_s_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cheap ones have no serial number; then it is the place that is named, or the device's hello that is compared."""
    port = SimpleNamespace(
        device="/dev/ttyUSB0", vid=0x1A86, pid=0x7523, serial_number=None, product="USB Serial", interface=None,
        usb_device_path="/sys/1-4",
    )  # fmt: skip
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [port])
    by_path = tmp_path / "pci-0000:00:14.0-usb-0:2:1.0-port0"
    by_path.symlink_to("/dev/ttyUSB0")
    assert find(Wanted(path=str(by_path))).product == "USB Serial"
    with pytest.raises(PortUnusable, match="calls itself 'USB Serial'") as raised:
        find(Wanted(path="/dev/ttyUSB0"))
    assert raised.value.code == "another"
    found = find(Wanted(path="/dev/ttyUSB0", serial="pla-e66"))
    assert found.serial == "", "so that the device has to say it"
    beside = "pmagent.actors.pla.line.discovery.glob.glob"
    monkeypatch.setattr(beside, lambda pattern: [port.device] if "USB" in pattern else [])
    assert [one.path for one in attached()] == ["/dev/ttyUSB0"]


def test_what_usb_has_brought_is_read_as_it_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(
        device="/dev/ttyACM0", vid=0x239A, pid=0x80F4, serial_number="E66", product=PRODUCT,
        interface="CircuitPython CDC2 control", usb_device_path="/sys/1-1",
    )  # fmt: skip
    built_in = SimpleNamespace(device="/dev/ttyS0", vid=None)
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [built_in, here])
    monkeypatch.setattr("pmagent.actors.pla.line.discovery.glob.glob", lambda _: [here.device])
    found = Attached("/dev/ttyACM0", "E66", PRODUCT, here.interface, 0x239A, 0x80F4, "/sys/1-1")
    assert attached() == [found]
    assert find(Wanted()) == found
    assert find(Wanted(path="/dev/ttyACM0")) == found
    assert attached_at("/dev/ttyACM7") == Attached("/dev/ttyACM7")


def test_a_device_that_goes_while_ports_are_looked_at_is_missing_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def vanished() -> list[SimpleNamespace]:
        return [SimpleNamespace(vid=int(None, 16))]  # type: ignore[call-overload]  # what pyserial does then

    monkeypatch.setattr("pmagent.actors.pla.line.discovery.glob.glob", lambda _: ["/dev/ttyACM0"])
    monkeypatch.setattr("serial.tools.list_ports.comports", vanished)
    with pytest.raises(PortUnusable) as raised:
        find(Wanted())
    assert raised.value.code == "missing"


def test_where_no_such_port_is_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.actors.pla.line.discovery.glob.glob", lambda _: [])
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: pytest.fail("looked"))
    assert attached() == []


def test_of_one_devices_two_lines_the_one_for_data_is_taken() -> None:
    data = Attached("/dev/ttyACM5", "E66", PRODUCT, "CircuitPython CDC2 control", where="/sys/1-1")
    console = Attached("/dev/ttyACM6", "E66", PRODUCT, "CircuitPython CDC control", where="/sys/1-1")
    assert chosen(Wanted(), [console, data]) == data


def test_a_port_of_which_usb_says_nothing_is_the_operators_choice() -> None:
    assert held_to(Wanted(path="/dev/serial0", serial="E66"), Attached("/dev/serial0")).path == "/dev/serial0"


# --- facts ----------------------------------------------------------------------------------------------------------


def test_a_status_that_says_nothing_new_is_no_fact() -> None:
    made = reporter()
    assert [type(fact) for fact in made.facts([Status(STATUS), Status(STATUS)])] == [HidReported]
    busy = {**STATUS, "uptime_seconds": 9, "action_count": 4, "error_state": {"error_code": "NONE", "error_count": 2}}
    assert made.facts([Status(busy)]) == []


@each("change", [
    {"mode": "EXECUTE"}, {"led_state": True}, {"kill_switch_state": "DISABLED"}, {"caps_lock": True},
    {"error_state": {"has_error": True, "error_code": "USB_HID_FAILURE"}},
])  # fmt: skip
def test_what_matters_of_a_status_is_a_fact(change: dict[str, Any]) -> None:
    made = reporter()
    made.facts([Status(STATUS)])
    [fact] = made.facts([Status({**STATUS, **change})])
    assert isinstance(fact, HidReported)
    assert fact.boot_id == HELLO["boot_id"]


def test_the_first_status_of_each_link_is_a_fact() -> None:
    made = reporter()
    made.facts([Status(STATUS)])
    made.begin("/dev/ttyACM0")
    assert [type(fact) for fact in made.facts([Hello(HELLO, compatible=True, text=""), Status(STATUS)])] == [
        HidLinked, HidReported,
    ]  # fmt: skip


def test_a_loss_is_a_fact_only_of_a_device_that_was_linked_and_once() -> None:
    made = reporter()
    assert made.facts([Lost("stale", "silence"), Lost("closed", "again")]) == [
        HidLost(boot_id=HELLO["boot_id"], code="stale", text="silence")
    ]
    made.begin("/dev/ttyACM0")
    assert made.facts([Lost("silent", "nobody there")]) == []
    assert not made.greeted


def test_a_broken_contract_is_told_once_until_a_link_was_fine() -> None:
    made = Reporter()
    broken = Broken("hello", "missing_field", "/boot_id" * 100, "it is missing")
    told = []
    for _ in range(3):
        made.begin("/dev/" + "x" * 300)
        told += made.facts([broken, Lost("garbled", "")])
    [fact] = told
    assert isinstance(fact, PlaContractBroken)
    assert (fact.contract, len(fact.pointer), len(fact.by)) == ("hello", 200, 200)
    made.fine()
    assert len(made.facts([broken])) == 1


def test_an_end_is_told_by_the_execution_and_is_no_fact_of_the_line() -> None:
    assert reporter().facts([Ended("exec-0001", "DONE", "", 1, 1)]) == []
