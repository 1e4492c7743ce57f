"""The device: what it does with each byte that it hears, and with each moment that passes (docs/hid-protocol.md).

Pure: whoever has the clock, the switch, the line and USB calls ``step`` again and again, and does what it says.
"""

from .clock import Clock, is_time
from .executions import REMEMBERED, Executions
from .lines import LINE_MAX, LineReader, encode
from .outbox import Outbox
from .refusal import Refused, closed, integer_of, is_digest, is_id, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shapes import Report, Sha256

FIRMWARE_VERSION = "1.1.0"
TICKS = 1 << 29
"""Ticks are milliseconds modulo this."""
LEASE_MIN_MS, LEASE_MAX_MS = 100, 2000
ACTION_MS = 100
"""From the end of an action to the first report of the next."""
REPORT_MS = 8
"""From one report to the next: machines poll a keyboard about as often."""
STATUS_MS = 1000
HELLOS_REMEMBERED = 16

_FIELDS: dict[str, tuple[str, ...]] = {
    "hello": ("contract_version", "contract_hash", "time"),
    "status": (),
    "ping": ("boot_id",),
    "arm": ("boot_id", "lease_ms"),
    "disarm": (),
    "prepare": ("boot_id", "execution_id", "digest", "part", "parts", "data"),
    "commit": ("boot_id", "execution_id", "digest"),
}
_ALWAYS = ("hello", "status", "disarm")
_TYPING = ("arm", "prepare", "commit")

_ERROR_CODES = {
    "PARSE": "COMMAND_PARSE_ERROR", "SCHEMA": "COMMAND_PARSE_ERROR", "ORDER": "COMMAND_PARSE_ERROR",
    "LINE": "COMMAND_PARSE_ERROR", "BOUNDS": "BOUNDS_VIOLATION", "UNTYPABLE": "BOUNDS_VIOLATION",
    "MODE": "MODE_MISMATCH", "NOT_ARMED": "MODE_MISMATCH", "USB": "USB_HID_FAILURE",
}  # fmt: skip
"""Ours to those of the device status; what is not here is an UNKNOWN_ERROR."""


class Step:
    """The work to do now: ``send`` bytes to the line, hand over the ``reports`` (one at most) and say so with
    ``Core.reported``, light the ``led`` or not, ``feed`` the watchdog or not."""

    def __init__(self, send: bytes, reports: "list[Report]", led: bool, feed: bool) -> None:
        self.send = send
        self.reports = reports
        self.led = led
        self.feed = feed


class Core:
    """A device since its boot.

    ``boot_id`` is 16 hex digits, drawn at boot; ``sha256`` makes hex of bytes. ``practice``: what it types goes to no
    machine, so it also types what names no layout; None: it says nothing of that, and does. ``pointer``: there is a
    mouse. All else is told to the
    host as it is.
    """

    def __init__(
        self,
        device_id: str,
        boot_id: str,
        contract_version: str,
        contract_hash: str,
        firmware_version: str,
        reset_reason: str,
        *,
        sha256: "Sha256",
        practice: "bool | None" = None,
        pointer: bool = True,
    ) -> None:
        self._device_id = device_id
        self._boot_id = boot_id
        self._contract = (contract_version, contract_hash)
        self._firmware_version = firmware_version
        self._reset_reason = reset_reason
        self._clock = Clock()
        self._reader = LineReader()
        self._out = Outbox()
        self._practice = practice
        self._executions = Executions(sha256, undeclared=practice is not False, pointer=pointer)
        self._now: int | None = None
        self._last_n = 0
        self._hellos: list[tuple[int, str]] = []
        self._greeted = self._compatible = False
        self._open = self._usb = self._caps_lock = False
        self._lease_ms = self._lease_left = 0
        self._report_wait = self._action_wait = 0
        self._status_wait = STATUS_MS
        self._pending: Report | None = None
        self._release = True
        self._action_count = self._error_count = 0
        self._last_action = self._error = self._error_text = ""
        self.armed = False
        self.killed = False
        """Latched: nothing but power-on, which is another Core, takes it back."""
        self.failed = False
        """The firmware itself failed; the watchdog is not fed any more."""

    # --- driven from outside --------------------------------------------------------------------------------------

    def step(
        self, now_ms: int, received: bytes, *, killed: bool, dtr: bool, usb: bool, caps_lock: bool, room: int
    ) -> Step:
        """One round.

        ``now_ms``: ticks, which wrap at ``TICKS``. ``received``: what has arrived since. ``killed``: the switch is
        open. ``dtr``: a host holds the line open. ``usb``: the machine takes reports. ``room``: so many bytes the line
        takes without waiting.
        """
        try:
            if self._pending is not None:  # nobody said what became of it
                self.reported(ok=False)
            self._pass(now_ms)
            self._look(killed, dtr, usb, caps_lock)
            self._hear(received if dtr else b"")
            report = self._next()
            if dtr:
                self._tell()
            return Step(self._out.take(room) if dtr else b"", [report] if report else [], self.armed, not self.failed)
        except MemoryError:
            self._pending = None
            self._stop("MEMORY")
            self._note("MEMORY", "there was no room")
            return Step(b"", [], self.armed, not self.failed)

    def reported(self, ok: bool, code: str = "") -> None:
        """The outcome of the last step's report: handed over or not, and why not: ``USB`` or ``MEMORY``."""
        report, self._pending = self._pending, None
        if report is None:
            return
        self._report_wait = REPORT_MS
        running = self._executions.running
        if not ok:
            code = code if code == "MEMORY" else "USB"
            self._report_wait = ACTION_MS
            self._note(code, "a report was not taken")
            self._stop(code)
        elif report[0] == "release":
            self._release = False
        elif running is not None:
            running.done += 1
            if running.done == running.of:
                self._end("DONE", "")

    def fail(self) -> None:
        """The firmware itself failed: nothing is typed any more, and the watchdog is left to reset the board."""
        self.failed = True
        self._note("WATCHDOG", "the firmware failed")
        self._stop("WATCHDOG")

    # --- the parts of a round -------------------------------------------------------------------------------------

    def _pass(self, now_ms: int) -> None:
        passed = 0 if self._now is None else (now_ms - self._now) % TICKS
        self._now = now_ms
        self._clock.advance(passed)
        self._report_wait = max(0, self._report_wait - passed)
        self._action_wait = max(0, self._action_wait - passed)
        self._status_wait = max(0, self._status_wait - passed)
        self._lease_left = max(0, self._lease_left - passed)
        if self.armed and self._lease_left == 0:
            self._stop("LEASE")

    def _look(self, killed: bool, dtr: bool, usb: bool, caps_lock: bool) -> None:
        if killed and not self.killed:
            self.killed = True
            self._stop("KILLED")
        if not usb and (self.armed or self._usb):
            self._stop("USB")
        if dtr != self._open:
            self._stop("LINK")
            self._greeted = self._compatible = False
            self._last_n = 0
            self._reader.clear()
            self._out.clear()
        running = self._executions.running
        if caps_lock and running is not None and running.action is not None and running.action.letters:
            self._stop("CAPS_LOCK")
        self._usb, self._open, self._caps_lock = usb, dtr, caps_lock

    def _hear(self, received: bytes) -> None:
        for request in self._reader.feed(received):
            if request is None:
                self._note("LINE", "a line was damaged")
            else:
                self._answer(request)

    def _next(self) -> "Report | None":
        if not self._usb or self._report_wait:
            return None
        running = self._executions.running
        if self._release:
            self._pending = ("release",)
        elif running is None or running.action is None or (self._action_wait and not running.done):
            return None
        elif self.armed and not (self.killed or self.failed):
            self._pending = running.action.report(running.done)
        return self._pending

    def _tell(self) -> None:
        if self._status_wait == 0:
            self._status_wait = STATUS_MS
            line = self._status()
            line["op"] = "status"
            self._out.drop_reports()
            self._out.put(encode(line), unasked=True)

    # --- endings --------------------------------------------------------------------------------------------------

    def _stop(self, code: str) -> None:
        """Disarm: what runs is aborted with ``code``, what is prepared forgotten, everything released."""
        self.armed = False
        self._lease_ms = self._lease_left = 0
        self._executions.forget()
        self._release = True
        self._end("ABORTED", code)

    def _end(self, state: str, code: str) -> None:
        running = self._executions.running
        if running is None:
            return
        self._executions.end(state, code)
        self._release = True
        self._action_wait = ACTION_MS
        self._action_count += 1
        self._last_action = self._clock.text()
        line = running.told()
        line["op"] = "ended"
        self._out.put(encode(line))

    def _note(self, code: str, text: str) -> None:
        self._error_count += 1
        self._error = _ERROR_CODES.get(code, "UNKNOWN_ERROR")
        self._error_text = f"{code}: {text}"

    # --- requests -------------------------------------------------------------------------------------------------

    def _answer(self, request: dict[str, object]) -> None:
        number = request.get("n")
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            self._note("PARSE", "a request without a number")
            return
        op = request.get("op")
        if op not in _ALWAYS and self._greeted and number <= self._last_n:
            self._note("PARSE", "an old request")
            return
        answer: dict[str, object] = {"re": number, "ok": True}
        try:
            answer.update(self._do(op, number, request))
        except Refused as refused:
            self._note(refused.code, refused.text)
            answer = {"re": number, "ok": False, "error": refused.code, "text": refused.text}
        self._last_n = max(self._last_n, number)
        self._out.put(encode(answer))

    def _do(self, op: object, number: int, request: dict[str, object]) -> dict[str, object]:
        """Carry out a request. Returns the answer's fields. Raises Refused."""
        if not isinstance(op, str) or op not in _FIELDS:
            raise Refused("PARSE", "there is no such op")
        if op == "hello":
            return self._hello(number, request)
        if op == "disarm":
            self._stop("DISARMED")
            return {"armed": False}
        if op != "status" and not self._greeted:
            raise Refused("NO_HELLO", "hello comes first")
        closed(request, ("n", "op") + _FIELDS[op], ("execution_id",) if op == "status" else (), "PARSE")
        if op == "status":
            return self._told(request)
        boot_id = text_of(request, "boot_id")
        if op in _TYPING and not self._compatible:
            raise Refused("CONTRACT_MISMATCH", "the contracts of host and device differ")
        if boot_id != self._boot_id:
            raise Refused("BOOT_MISMATCH", "the device has booted since")
        if op == "ping":
            self._lease_left = self._lease_ms
            return {"status": self._status()}
        if op == "arm":
            return self._arm(request)
        return self._commit(request) if op == "commit" else self._prepare(request)

    def _hello(self, number: int, request: dict[str, object]) -> dict[str, object]:
        version, host_hash, time = (text_of(request, name) for name in _FIELDS["hello"])
        if not (is_time(time) and time[-1] == "Z"):
            raise Refused("PARSE", "time is no time in UTC")
        self._stop("DISARMED")
        self._clock.set(time)
        if (number, time) not in self._hellos:  # not the same line again: whoever speaks counts anew
            self._hellos.append((number, time))
            self._hellos = self._hellos[-HELLOS_REMEMBERED:]
            self._last_n = number
        self._greeted = True
        major = self._contract[0].split(".")[0]
        self._compatible = version.split(".")[0] == major and host_hash == self._contract[1]
        self._error = self._error_text = ""
        if not self._compatible:
            self._note("CONTRACT_MISMATCH", "the contracts of host and device differ")
        hello: dict[str, object] = {
            "device_id": self._device_id,
            "boot_id": self._boot_id,
            "contract_version": self._contract[0],
            "contract_hash": self._contract[1],
            "firmware_version": self._firmware_version,
            "reset_reason": self._reset_reason,
            "kill_switch_state": self._switch(),
            "led_state": False,
            "armed": False,
            "max_line": LINE_MAX,
            "layout": "us",
            "remembers": REMEMBERED,
        }
        if self._practice is not None:
            hello["practice"] = self._practice
        return {"hello": hello}

    def _arm(self, request: dict[str, object]) -> dict[str, object]:
        lease_ms = integer_of(request, "lease_ms")
        if not LEASE_MIN_MS <= lease_ms <= LEASE_MAX_MS:
            raise Refused("BOUNDS", f"lease_ms is not {LEASE_MIN_MS} to {LEASE_MAX_MS}")
        self._ready()
        self.armed = True
        self._lease_ms = self._lease_left = lease_ms
        return {"armed": True, "lease_ms": lease_ms}

    def _prepare(self, request: dict[str, object]) -> dict[str, object]:
        if self._executions.running is not None:
            raise Refused("BUSY", "an execution is being typed")
        if self.killed:
            raise Refused("KILLED", "the kill switch is not ready, or was not since power-on")
        return self._executions.collect(request)

    def _commit(self, request: dict[str, object]) -> dict[str, object]:
        execution_id, digest = text_of(request, "execution_id"), text_of(request, "digest")
        if not (is_id(execution_id) and is_digest(digest)):
            raise Refused("PARSE", "execution_id or digest has another shape")
        found = self._executions.find(execution_id)
        if found is not None and found.digest != digest:
            raise Refused("DIGEST", "the execution is known with another digest")
        if found is not None and found.state != "PREPARED":
            return {"state": found.state, "done": found.done, "of": found.of}
        if self._executions.running is not None:
            raise Refused("BUSY", "an execution is being typed")
        self._ready()
        if not self.armed:
            raise Refused("NOT_ARMED", "the device is not armed")
        if found is None:
            raise Refused("NOT_PREPARED", "this execution is not prepared")
        if self._caps_lock and found.action is not None and found.action.letters:
            raise Refused("CAPS_LOCK", "the machine's Caps Lock is on")
        self._executions.begin(found)
        return {"state": found.state, "done": found.done, "of": found.of}

    def _ready(self) -> None:
        """Raise Refused unless something could be typed now."""
        if self.failed:
            raise Refused("WATCHDOG", "the firmware failed, and is about to be reset")
        if self.killed:
            raise Refused("KILLED", "the kill switch is not ready, or was not since power-on")
        if not self._usb:
            raise Refused("USB", "the machine does not take reports")

    # --- what is told ---------------------------------------------------------------------------------------------

    def _told(self, request: dict[str, object]) -> dict[str, object]:
        answer: dict[str, object] = {"status": self._status()}
        if "execution_id" in request:
            execution_id = text_of(request, "execution_id")
            if not is_id(execution_id):
                raise Refused("PARSE", "execution_id has another shape")
            answer["execution"] = self._executions.told(execution_id)
        return answer

    def _switch(self) -> str:
        return "DISABLED" if self.killed else "ARMED"

    def _status(self) -> dict[str, object]:
        """The device status document."""
        status: dict[str, object] = {
            "device_id": self._device_id,
            "timestamp": self._clock.text(),
            "mode": "EXECUTE" if self.armed else "OBSERVE",
            "led_state": self.armed,
            "kill_switch_state": self._switch(),
            "uptime_seconds": self._clock.uptime,
            "firmware_version": self._firmware_version,
            "action_count": self._action_count,
            "contract_version": self._contract[0],
            "contract_hash": self._contract[1],
            "boot_id": self._boot_id,
            "caps_lock": self._caps_lock,
            "lease_ms": self._lease_left,
            "error_state": self._error_state(),
        }
        if self._last_action:
            status["last_execution_time"] = self._last_action
        return status

    def _error_state(self) -> dict[str, object]:
        """The last error since hello, and how many there were since boot."""
        state: dict[str, object] = {
            "has_error": self._error != "",
            "error_code": self._error or "NONE",
            "error_count": self._error_count,
        }
        if self._error_text:
            state["error_message"] = self._error_text
        return state
