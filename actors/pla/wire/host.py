"""The host's end of the line: one request under way, answers by their numbers, the device's signs of life
(docs/hid-protocol.md).

It knows no clock and no port. Its driver hands in bytes and times (seconds of a clock that only rises), writes what
``to_send`` gives, and comes back at ``next_at``. Messages of the device are held against its contract here, at the
border. Once lost, a link stays lost; the next one begins with another hello.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Final

import msgspec

from pmagent.actors.pla.wire.answers import (
    DisarmAnswer,
    HelloAnswer,
    KnownExecution,
    StatusAnswer,
    answer_of,
    broken,
    ended_of,
)
from pmagent.actors.pla.wire.lines import SPOILER, Damaged, LineReader, encode
from pmagent.actors.pla.wire.messages import (
    ANSWER_SECONDS,
    Answered,
    Broken,
    Check,
    Ended,
    Heard,
    Hello,
    Lost,
    Op,
    Refused,
    Reply,
    Status,
    Unanswered,
)
from pmagent.contracts.pla import EXECUTIONS_REMEMBERED, HEARTBEAT_SECONDS

HELLO_TRIES: Final = 3
UNANSWERED_MAX: Final = 3
"""After so many requests in a row without an answer the device does not listen, whatever it says unasked."""
TALK_BYTES_MAX: Final = 64 * 1024
"""A device that says more within ``HEARTBEAT_SECONDS`` is let go: it needs a hundredth of that, and its reports would
fill the log."""
GRACE_SECONDS: Final = 0.25
"""A request whose answer is due is waited for no longer than this once a disarm wants to go."""
NUMBER_MAX: Final = 999_999_999

_SPOILT: Final = SPOILER + b"\n"
_ACTS: Final = frozenset(("arm", "prepare", "commit"))
"""Requests that a device with another contract does not get."""
_BOUND: Final = _ACTS | {"ping"}
"""Requests that name their boot on the line, too: all that arms, keeps armed, or has keys pressed. None of it leaves
between the wish to disarm and the device's word that it is disarmed."""
_BEGAN_ANEW: Final = frozenset(("BOOT_MISMATCH", "NO_HELLO"))
"""Answers of a device that does not know of this link's hello."""


class _Request(msgspec.Struct):
    """A request on its way: when its answer is due (0: not under way yet), and whether its line left this side."""

    ticket: int
    op: Op
    fields: dict[str, Any]
    seconds: float
    number: int = 0
    due: float = 0.0
    sent: bool = False


class HostLink:
    """One link, from hello to its loss.

    ``version`` and ``schemas`` (the hash of the set) are our contract's; ``check`` holds a document against its
    contract. ``first`` is the number of the first request: one that no link shortly before has used, so that what is
    still on its way from then answers nothing. ``device_id``: no other device is greeted ("": any is).
    """

    def __init__(self, check: Check, version: str, schemas: str, first: int = 1, device_id: str = "") -> None:
        self._check = check
        self._version = version
        self._schemas = schemas
        self._device_id = device_id
        self._number = first - 1
        self._reader = LineReader()
        self._out = b""
        self._state = "new"
        self._hello: Hello | None = None
        self._time = ""
        self._hellos = 0
        self._now: _Request | None = None
        self._waiting: deque[_Request] = deque()
        self._tickets = 0
        self._committed: set[str] = set()  # each entry took an operator's approval
        self._ended: OrderedDict[str, Ended] = OrderedDict()
        self._unanswered = 0
        self._disarming = False
        self._heard_at = 0.0
        self._window = (0.0, 0)
        self._heard: list[Heard] = []
        self._answers: list[tuple[int, Reply]] = []
        self.progress: KnownExecution | None = None
        """An execution as the device has told of it last; what is typed is asked about each second."""
        self.lost: Lost | None = None
        """How the link was lost; None while it is not."""
        self.damaged = 0
        """Lines that were no good."""
        self.foreign = 0
        """Good lines that say nothing to us: old answers, our own lines come back."""

    # --- what the driver does ---------------------------------------------------------------------------------------

    def begin(self, now: float, time: str) -> None:
        """Open the line with what ends another's, and hello; ``time`` (RFC 3339, UTC) sets the device's clock."""
        assert self._state == "new", "a link begins once"
        self._state, self._time, self._heard_at = "opening", time, now
        self._say_hello(now)

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the device."""
        end, received = self._window if now < self._window[0] else (now + HEARTBEAT_SECONDS, 0)
        received += len(data)
        self._window = end, received
        if received > TALK_BYTES_MAX:
            self._lose("garbled", f"the device talks without end{self._damage()}")
        for line in self._reader.feed(data):
            if self._state not in ("opening", "up"):
                return
            if isinstance(line, Damaged):
                self.damaged += 1
            else:
                self._take(line, now)
        self._go_on(now)

    def tick(self, now: float) -> None:
        """Take notice of the time: answers that are overdue, a device that is silent."""
        late = self._now
        if late is not None and now >= late.due:
            self._overdue(late, now)
        if self._state == "up" and now >= self._heard_at + HEARTBEAT_SECONDS:
            self._lose("stale", f"nothing was heard of the device for {HEARTBEAT_SECONDS:g} s{self._damage()}")
        self._go_on(now)

    def to_send(self) -> bytes:
        """The bytes to write now. Taken bytes count as sent: call it only when the port takes bytes."""
        out, self._out = self._out, b""
        if out and self._now is not None:
            self._now.sent = True
        return out

    def closed(self, code: str, text: str) -> None:
        """The port is gone, or is about to be."""
        self._lose(code, text)

    def heard(self) -> list[Heard]:
        """Everything heard since the last call."""
        heard, self._heard = self._heard, []
        return heard

    def answers(self) -> list[tuple[int, Reply]]:
        """Tickets whose requests have come to an end since the last call, each once."""
        answers, self._answers = self._answers, []
        return answers

    @property
    def next_at(self) -> float | None:
        """When ``tick`` has something to do, at the latest."""
        times = [self._now.due] if self._now is not None else []
        if self._state == "up":
            times.append(self._heard_at + HEARTBEAT_SECONDS)
        return min(times, default=None)

    # --- what the exchanges ask -------------------------------------------------------------------------------------

    @property
    def hello(self) -> Hello | None:
        """The device, while the link is up."""
        return self._hello if self._state == "up" else None

    @property
    def is_lost(self) -> bool:
        """Whether the link is over."""
        return self.lost is not None

    def ask(
        self, op: Op, fields: dict[str, Any], now: float, seconds: float = ANSWER_SECONDS, boot_id: str = ""
    ) -> int:
        """Send a request when those before it have come to an end, a disarm ahead of all others; the ticket of its
        answer, which comes for certain. ``boot_id``: it is for the device with this boot alone. Raises LineTooLong."""
        if boot_id and op in _BOUND:
            fields = {"boot_id": boot_id, **fields}
        encode({"n": NUMBER_MAX, "op": op, **fields})
        self._tickets += 1
        reply = self._barred(op, fields, boot_id)
        if reply is not None:
            self._answers.append((self._tickets, reply))
            return self._tickets
        request = _Request(self._tickets, op, fields, seconds)
        if op == "commit":
            self._committed.add(fields["execution_id"])
        if op == "disarm":
            self._call_off()
            self._waiting.appendleft(request)
            if self._now is not None and self._now.op != "disarm":
                self._now.due = min(self._now.due, now + GRACE_SECONDS)
        else:
            self._waiting.append(request)
        self._go_on(now)
        return request.ticket

    def _call_off(self) -> None:
        """It is to be disarmed: what waits and would have it armed or typing never leaves, whatever becomes of the
        disarm's own line, and nothing arms it or renews its lease until the device has said that it is disarmed."""
        self._disarming = True
        for request in [one for one in self._waiting if one.op in _BOUND]:
            self._waiting.remove(request)
            self._answers.append((request.ticket, _called_off()))
        under_way = self._now
        if under_way is not None and not under_way.sent and under_way.op in _BOUND:  # its line is still here
            self._now, self._out = None, b""
            self._answers.append((under_way.ticket, _called_off()))

    def drop(self, ticket: int, now: float) -> None:
        """Nobody waits for this answer any more. Unsent bytes never leave."""
        self._waiting = deque(request for request in self._waiting if request.ticket != ticket)
        if self._now is not None and self._now.ticket == ticket and not self._now.sent:
            self._now, self._out = None, b""
        self._go_on(now)

    def ended(self, execution_id: str) -> Ended | None:
        """How an execution ended, if the device has said so on this link."""
        return self._ended.get(execution_id)

    # --- lines ------------------------------------------------------------------------------------------------------

    def _take(self, line: dict[str, Any], now: float) -> None:
        if "re" in line:
            self._answer(line, now)
        elif self._state == "up" and line.get("op") == "status" and "n" not in line:
            self._status({name: value for name, value in line.items() if name != "op"}, now)
        elif self._state == "up" and line.get("op") == "ended" and "n" not in line:
            self._end(line, now)
        else:
            self.foreign += 1

    def _answer(self, line: dict[str, Any], now: float) -> None:
        request = self._now
        if request is None or type(line["re"]) is not int or line["re"] != request.number or not request.sent:
            self.foreign += 1
            return
        answer = answer_of(request.op, line, self._check)
        if isinstance(answer, Broken):
            self._broke(answer, self._version_difference(line.get("hello")) if request.op == "hello" else "")
            return
        self._unanswered = 0
        self._heard_at = now
        self._now = None
        if isinstance(answer, HelloAnswer):
            self._greeted(answer.hello)
            return
        if isinstance(answer, DisarmAnswer) or (isinstance(answer, StatusAnswer) and _is_disarmed(answer.status)):
            self._disarming = False  # nothing that arms has left since it was wished
        if isinstance(answer, StatusAnswer) and not self._same_boot(answer.status):
            self._answers.append((request.ticket, Unanswered(sent=True, code="reset", text="the device began anew")))
            return
        if request.op == "hello" and isinstance(answer, Refused):
            self._lose("garbled", f"the device refused hello: {answer.code}")
            return
        anew = ""
        if isinstance(answer, Refused) and answer.code in _BEGAN_ANEW:
            anew = f"the device began anew: it answered {answer.code}"
        if anew and request.op == "commit":
            # A line may come twice: the boot before may have taken the order, typed, and left the answer to this one.
            self._answers.append((request.ticket, Unanswered(sent=True, code="reset", text=anew)))
        else:
            self._answers.append((request.ticket, answer if isinstance(answer, Refused) else Answered(answer)))
        if isinstance(answer, StatusAnswer):
            self.progress = answer.execution or self.progress
            self._heard.append(Status(answer.status))
        elif anew:
            self._lose("reset", anew)

    def _greeted(self, document: dict[str, Any]) -> None:
        if self._device_id not in ("", document["device_id"]):
            self._lose("another", f"it is the device {document['device_id']}, not {self._device_id}")
            return
        differs = difference(document, self._version, self._schemas)
        self._hello = Hello(document, not differs, differs)
        self._state = "up"
        self._heard.append(self._hello)

    def _status(self, document: dict[str, Any], now: float) -> None:
        assert self._hello is not None, "only an open link hears statuses"
        problem = broken("device_status", document, self._check)
        if problem is not None and self._hello.compatible:
            self._broke(problem)
        elif problem is not None:  # of another contract: it is there, and what it says is not ours to read
            self._heard_at = now
        elif self._same_boot(document):
            self._heard_at = now
            self._heard.append(Status(document))
            if self._now is None and _is_disarmed(document):
                self._disarming = False  # its lease is over; with a request under way it may have been said before

    def _same_boot(self, status: dict[str, Any]) -> bool:
        """Whether the status is of the boot that said hello; else the link is lost."""
        assert self._hello is not None, "only an open link hears statuses"
        if status.get("boot_id", self._hello.document["boot_id"]) == self._hello.document["boot_id"]:
            return True
        self._lose("reset", "the device began anew: it has another boot")
        return False

    def _end(self, line: dict[str, Any], now: float) -> None:
        ended = ended_of(line)
        if isinstance(ended, Broken):
            self._broke(ended)
            return
        self._heard_at = now
        if ended.execution_id not in self._ended:  # what was said first stands
            self._ended[ended.execution_id] = ended
            self._heard.append(ended)
            while len(self._ended) > EXECUTIONS_REMEMBERED:
                self._ended.popitem(last=False)

    def _broke(self, problem: Broken, why: str = "") -> None:
        self._heard.append(problem)
        self._lose("garbled", f"the device broke the contract of {problem.contract}" + (f": {why}" if why else ""))

    def _version_difference(self, hello: object) -> str:
        """In which contract a hello that is none of ours says that it is written; "" when it does not say."""
        if not isinstance(hello, dict):
            return ""
        received = {name: hello.get(name) for name in ("contract_version", "contract_hash")}
        if not all(isinstance(one, str) and len(one) <= 64 for one in received.values()):
            return ""
        return difference(received, self._version, self._schemas)

    # --- requests ---------------------------------------------------------------------------------------------------

    def _barred(self, op: Op, fields: dict[str, Any], boot_id: str) -> Reply | None:
        """Why a request does not reach the device."""
        hello = self.hello
        if hello is None:
            return Unanswered(sent=False, code="no_device", text="no device is linked")
        if op in _ACTS and not hello.compatible:
            return Refused("CONTRACT_MISMATCH", hello.text)
        if boot_id not in ("", hello.document["boot_id"]):
            what = "the device that is linked has another boot"
            if op == "commit":
                return Unanswered(sent=False, code="reset", text=what)
            return Refused("BOOT_MISMATCH", what)
        if self._disarming and op in _BOUND and op != "arm":
            return _called_off()
        if op == "commit" and fields["execution_id"] in self._committed:
            return Unanswered(sent=True, code="repeated", text="this execution was committed already")
        return None

    def _say_hello(self, now: float) -> None:
        self._hellos += 1
        fields = {"contract_version": self._version, "contract_hash": self._schemas, "time": self._time}
        self._send(_Request(0, "hello", fields, ANSWER_SECONDS), now)

    def _send(self, request: _Request, now: float) -> None:
        self._number = self._number % NUMBER_MAX + 1
        request.number, request.due = self._number, now + request.seconds
        # This ends a line of which the device has only a part, as a damaged one, so that an order of which nobody
        # knows is not carried out late: not one of ours, nor of another host whose going the device could not see.
        spoilt = _SPOILT if request.op == "hello" or self._unanswered else b""
        self._out = spoilt + encode({"n": request.number, "op": request.op, **request.fields})
        self._now = request

    def _go_on(self, now: float) -> None:
        while self._state == "up" and self._now is None and self._waiting:
            request = self._waiting.popleft()
            if request.op == "arm" and self._disarming:
                self._answers.append((request.ticket, _called_off()))
            else:
                self._send(request, now)

    def _overdue(self, request: _Request, now: float) -> None:
        self._now = None
        if not request.sent:
            self._out = b""
        self._unanswered += 1
        if request.op != "hello":
            text = f"no answer to {request.op} in time" if request.sent else "the device takes nothing"
            self._answers.append((request.ticket, Unanswered(request.sent, "silent", text)))
            if self._unanswered >= UNANSWERED_MAX:
                self._lose("silent", f"the device did not answer {UNANSWERED_MAX} requests in a row{self._damage()}")
        elif self._hellos < HELLO_TRIES:
            self._say_hello(now)
        else:
            self._lose("garbled" if self.damaged else "silent", f"no answer to hello{self._damage()}")

    def _lose(self, code: str, text: str) -> None:
        if self._state == "lost":
            return
        self._state, self._out = "lost", b""
        self.lost = Lost(code, text)
        self._heard.append(self.lost)
        under_way, self._now = self._now, None
        requests = [*([under_way] if under_way is not None else []), *self._waiting]
        self._waiting.clear()
        for request in requests:
            if request.op != "hello":
                self._answers.append((request.ticket, Unanswered(request.sent, code, text)))

    def _damage(self) -> str:
        """How the line looked, for people who search for the reason."""
        damaged = f"; {self.damaged} lines were damaged" if self.damaged else ""
        return f"{damaged}; {self.foreign} lines were no answers" if self.foreign else damaged


def _is_disarmed(status: dict[str, Any]) -> bool:
    return status.get("led_state") is False


def _called_off() -> Unanswered:
    return Unanswered(sent=False, code="disarmed", text="the device has not said yet that it is disarmed")


def difference(hello: dict[str, Any], version: str, schemas: str) -> str:
    """Why a device with this hello may not be told to type; "" when its contract is ours."""
    theirs = hello["contract_version"]
    if theirs.partition(".")[0] != version.partition(".")[0]:
        return f"its contract is {theirs}, ours is {version}"
    if hello["contract_hash"] != schemas:
        return "its schemas are not ours: the hashes differ"
    return ""
