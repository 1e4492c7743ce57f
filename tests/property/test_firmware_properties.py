"""The device types what was approved, once, while it may, whatever arrives and whatever happens."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.contracts.pla import Action, KeyCombo, MouseMove, TypeText, digest, is_typable, objections
from pmagent.firmware.actions import TEXT_MAX, check
from pmagent.firmware.document import Unreadable, read, write
from pmagent.firmware.layout import SHIFT, presses
from pmagent.firmware.lines import LineReader, decode, encode
from pmagent.firmware.refusal import Refused
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.firmware_board import BOOT, CONTRACT, TIME, compact, document
from tests.support.firmware_monitor import RELEASE, TICKS, Monitor
from tests.support.firmware_scripts import actions, script
from tests.support.firmware_vectors import crc16

EVERY = "".join(filter(is_typable, map(chr, range(128))))
CHARACTERS = {stroke: character for character in EVERY for stroke in presses(character) or ()}
BY_ID = [f"exec-{number:08d}" for number in range(4)]


def reports(action: Action) -> list[tuple[Any, ...]]:
    """Of an action, by its check at the device; the vectors hold these against what was written by hand."""
    data = compact(document(action, "exec-00000000")).encode()
    found = check(data, "exec-00000000", digest(action), lambda data: sha256(data).hexdigest())
    return [found.report(number) for number in range(found.of)]


def request(number: int, op: str, **fields: Any) -> bytes:
    return encode({"n": number, "op": op, **fields})


def hello(number: int = 1) -> bytes:
    return request(number, "hello", **CONTRACT, time=TIME)


def handed_over(number: int, action: Action, execution_id: str) -> bytes:
    """The requests from prepare to commit."""
    text = compact(document(action, execution_id))
    pieces = [text[at : at + 512] for at in range(0, len(text), 512)]
    named = {"boot_id": BOOT, "execution_id": execution_id, "digest": digest(action)}
    lines = [
        request(number + at, "prepare", **named, part=at, parts=len(pieces), data=piece)
        for at, piece in enumerate(pieces)
    ]
    number += len(pieces)
    return b"".join(
        [*lines, request(number, "arm", boot_id=BOOT, lease_ms=2000), request(number + 1, "commit", **named)]
    )


class Approved(dict[str, list[tuple[Any, ...]]]):
    """Which action an id stands for is drawn by the script; so any of them may be what was approved."""

    def __init__(self, monitor_of: list[Monitor]) -> None:
        super().__init__()
        self._all = [reports(action) for action in actions()]
        self._monitor_of = monitor_of

    def __missing__(self, execution_id: str) -> list[tuple[Any, ...]]:
        running = self._monitor_of[0].core._executions.running
        assert running is not None
        wanted = {digest(action): reports(action) for action in actions()}
        self[execution_id] = wanted[running.digest]
        return self[execution_id]


def watched(steps: list[dict[str, Any]], begin_ms: int = 0) -> Monitor:
    """Run a script under watch."""
    holder: list[Monitor] = []
    monitor = Monitor(Approved(holder), begin_ms)
    holder.append(monitor)
    for step in steps:
        monitor.step(step["ms"], step["bytes"].encode(), **step["machine"], taken=step["taken"])
    monitor.settle()
    return monitor


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 1 << 32), begin=st.sampled_from([0, TICKS - 500, TICKS - 5000]))
def test_whatever_happens_the_rules_hold(seed: int, begin: int) -> None:
    watched(script(Random(seed), 120), begin)


def test_the_scripts_reach_what_they_are_for() -> None:
    """Typing, endings of each kind, refusals of each kind: else the property above would hold of nothing."""
    ends = {"DONE", "KILLED", "DISARMED", "LEASE", "USB", "CAPS_LOCK"}
    refusals = {"NO_HELLO", "KILLED", "NOT_ARMED", "NOT_PREPARED", "DIGEST", "MODE", "ORDER", "KNOWN", "BUSY"}
    typed, killed = 0, False
    for seed in range(150):
        monitor = watched(script(Random(seed), 120))
        typed, killed = typed + monitor.typed, killed or monitor.killed
        ends -= {line["code"] or line["state"] for line in monitor.told if line.get("op") == "ended"}
        refusals -= {line["error"] for line in monitor.told if line.get("ok") is False}
        if not ends and not refusals and killed and typed > 1000:
            break
    assert (ends, refusals, killed, typed > 1000) == (set(), set(), True, True)


@settings(max_examples=examples(100), deadline=None)
@given(chunks=st.lists(st.one_of(st.binary(max_size=80), st.text(EVERY, max_size=80).map(str.encode)), max_size=30))
@example(chunks=[b'{"n":1,"op":"commit"}\n', b"x" * 5000, b"\n\n*\n"])
def test_garbage_is_never_acted_on(chunks: list[bytes]) -> None:
    """Even where a device is armed and something is prepared, nothing but a line of ours does anything."""
    monitor = Monitor({})
    monitor.step(1, hello())
    monitor.step(10, handed_over(2, TypeText(text="never"), BY_ID[0]).rsplit(b"\n", 2)[0] + b"\n")
    assert monitor.core.armed
    for chunk in chunks:
        monitor.step(8, chunk)
    assert monitor.typed == 0
    monitor.settle()


@settings(max_examples=examples(60), deadline=None)
@given(
    text=st.text(EVERY, min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 4000), max_size=8),
    again=st.lists(st.integers(0, 7), max_size=5),
)
def test_a_text_comes_out_as_it_is_whatever_the_line_cuts_or_repeats(
    text: str, cuts: list[int], again: list[int]
) -> None:
    """Bytes cut anywhere change nothing; lines that come again type nothing again."""
    monitor = Monitor({BY_ID[0]: reports(TypeText(text=text))})
    stream = hello() + handed_over(2, TypeText(text=text), BY_ID[0])
    lines = stream.splitlines(keepends=True)
    stream += b"".join(lines[number] for number in again if 0 < number < len(lines))
    typed = []
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for begin, end in pairwise(edges):
        monitor.step(1, stream[begin:end])
    for _ in range(2 * len(text) + 40):
        monitor.step(8, b"")
        typed.append(monitor.last_report)
    assert monitor.typed == 2 * len(text)
    ended = [line for line in monitor.told if line.get("op") == "ended"]
    assert [(line["state"], line["done"]) for line in ended] == [("DONE", 2 * len(text))]


@settings(max_examples=examples(30), deadline=None)
@given(text=st.text(EVERY, min_size=1, max_size=TEXT_MAX))
def test_the_reports_of_a_text_read_as_the_text(text: str) -> None:
    found, free = "", True
    for kind, modifiers, keys in reports(TypeText(text=text)):
        assert kind == "keyboard"
        assert bool(keys) is free, "each key is let go before the next"
        free = not free
        if keys:
            assert modifiers in (0, SHIFT)
            found += CHARACTERS[(modifiers, keys[0])]
    assert found == text
    assert free


@each("action", [TypeText(text="Secret 1\n"), KeyCombo(keys=["ctrl", "c"]), MouseMove(x=900, y=0)])
def test_a_cut_at_any_report_leaves_a_beginning_and_then_releases(action: Action) -> None:
    wanted = reports(action)
    causes: list[dict[str, Any]] = [{"killed": True}, {"dtr": False}, {"usb": False}, {"taken": False}]
    for cause in causes:
        for after in range(1, len(wanted)):
            monitor = Monitor({BY_ID[0]: wanted}, TICKS - 20)
            monitor.step(1, hello())
            monitor.step(8, handed_over(2, action, BY_ID[0]))
            for _ in range(after - monitor.typed):
                monitor.step(8, b"")
            assert monitor.typed == after
            monitor.step(8, b"", **cause)
            assert monitor.typed <= after + ("taken" in cause)
            for _ in range(40):
                monitor.step(8, b"")
            assert monitor.last_report == RELEASE
            assert monitor.typed <= after + ("taken" in cause)
            assert monitor.core.armed is False


@settings(max_examples=examples(25), deadline=None)
@given(lease=st.integers(100, 2000), begin=st.integers(0, TICKS - 1), pings=st.integers(0, 3))
def test_a_lease_ends_to_the_millisecond_also_where_ticks_wrap(lease: int, begin: int, pings: int) -> None:
    monitor = Monitor({}, begin)
    monitor.step(1, hello())
    monitor.step(1, request(2, "arm", boot_id=BOOT, lease_ms=lease))
    for number in range(pings):
        monitor.step(lease - 1, request(3 + number, "ping", boot_id=BOOT))
        monitor.step(0, b"")
        assert monitor.core.armed
    monitor.step(lease - 1, b"")
    assert monitor.core.armed
    monitor.step(1, b"")
    assert not monitor.core.armed


@each("jump", [5000, 1 << 28, (1 << 28) + 1, TICKS - 1])
def test_no_pause_of_the_loop_however_long_keeps_it_armed(jump: int) -> None:
    monitor = Monitor({})
    monitor.step(1, hello())
    monitor.step(1, request(2, "arm", boot_id=BOOT, lease_ms=2000))
    monitor.step(jump, b"")
    assert not monitor.core.armed


def test_64_executions_are_remembered_and_none_of_them_is_typed_again() -> None:
    action = TypeText(text="a")
    ids = [f"exec-{number:08d}" for number in range(70)]
    monitor = Monitor(dict.fromkeys(ids, reports(action)))
    monitor.step(1, hello())
    number = 10
    for execution_id in ids:
        monitor.step(100, handed_over(number, action, execution_id))
        for _ in range(6):
            monitor.step(20, b"")
        number += 10
    assert monitor.began == ids
    for execution_id in ids[-64:]:
        monitor.step(20, handed_over(number, action, execution_id))
        number += 10
    for execution_id in (*ids[:2], *ids[-2:]):
        monitor.step(100, request(number, "status", execution_id=execution_id))
        number += 1
    assert monitor.began == ids
    assert [line["execution"]["state"] for line in monitor.told[-4:]] == ["NONE", "NONE", "DONE", "DONE"]


def test_a_host_that_never_reads_makes_nothing_wait_or_grow() -> None:
    monitor = Monitor({BY_ID[0]: reports(TypeText(text="ab"))})
    monitor.step(1, hello(), room=0)
    monitor.step(10, handed_over(2, TypeText(text="ab"), BY_ID[0]), room=0)
    for number in range(3000):
        monitor.step(8, request(100 + number, "status") * (number % 3), room=0)
    assert monitor.typed == 4
    assert sum(len(line) for line, _ in monitor.core._out._lines) < 16_384
    assert monitor.told == []


@settings(max_examples=examples(100), deadline=None)
@given(chunks=st.lists(st.integers(1, 30)), room=st.integers(1, 40))
def test_a_host_that_reads_slowly_gets_whole_lines(chunks: list[int], room: int) -> None:
    monitor = Monitor({})
    monitor.step(1, hello(), room=room)
    for number, count in enumerate(chunks):
        monitor.step(500, request(2 + number, "status") * count, room=room)
    for _ in range(8 * 1500):
        if not monitor.core._out._lines:
            break
        monitor.step(1, b"", room=room)  # the monitor refuses a damaged line
    assert not monitor.core._out._lines


JSON = st.recursive(
    st.booleans() | st.integers(-999_999_999, 999_999_999) | st.text(EVERY, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(EVERY, max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(150), deadline=None)
@given(value=JSON)
def test_json_is_written_as_the_canonical_form_and_read_back(value: object) -> None:
    text = write(value)
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert _depth(value) > 6 or read(text.encode()) == value


@settings(max_examples=examples(300), deadline=None)
@given(text=st.text('{}[]",:\\u0123eE+-.truefalsn dD8', max_size=24))
@example(text='{"a":1,}')
@example(text="[1 2]")
def test_what_is_read_is_json_as_others_read_it(text: str) -> None:
    """No text is taken that Python's reader refuses, and none has another meaning."""
    try:
        found = read(text.encode())
    except Unreadable:
        return
    assert _only_integers(json.loads(text)) == found


@settings(max_examples=examples(100), deadline=None)
@given(
    value=st.dictionaries(st.text(EVERY, max_size=5), JSON, max_size=4),
    flips=st.sets(st.integers(0, 10_000), max_size=3),
)
def test_a_line_is_read_as_written_and_never_with_up_to_three_flipped_bits(
    value: dict[str, Any], flips: set[int]
) -> None:
    line = bytearray(encode(value))
    assert line[-5:-1] == f"{crc16(bytes(line[:-6])):04x}".encode()
    if _depth(value) <= 6:
        assert decode(bytes(line[:-1])) == value
    bits = {flip % (8 * (len(line) - 1)) for flip in flips}
    if len(bits) in (1, 3) or (len(bits) == 2 and len(line) < 4000):
        for bit in bits:
            line[bit // 8] ^= 1 << bit % 8
        assert all(found is None for found in LineReader().feed(bytes(line)))


@settings(max_examples=examples(150), deadline=None)
@given(
    action=st.one_of(
        st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from(EVERY), max_size=20).map(
            lambda text: TypeText(text=text)
        ),
        st.lists(st.sampled_from(["ctrl", "alt", "a", "F1", "f1", "é", "", "enter", "8", "!"]), max_size=8).map(
            lambda keys: KeyCombo(keys=keys)
        ),
        st.builds(lambda x, y: MouseMove(x=x, y=y), st.integers(-2000, 6000), st.integers(-2000, 6000)),
    )
)
def test_the_device_refuses_just_what_the_contracts_object_to(action: Action) -> None:
    data = compact(document(action, BY_ID[0])).encode()
    code = ""
    try:
        check(data, BY_ID[0], digest(action), lambda data: sha256(data).hexdigest())
    except Refused as refused:
        code = refused.code
    assert code in (("SCHEMA", "BOUNDS", "UNTYPABLE") if objections(action) else ("",))


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


def _only_integers(value: object) -> object:
    """Numbers as the device takes them: what is no integer of nine digits is None."""
    if isinstance(value, dict):
        return {key: _only_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_only_integers(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value if isinstance(value, int) and abs(value) < 10**9 else None
