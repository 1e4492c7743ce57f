"""A log opens after any crash with everything that was acknowledged; damage to that is refused."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pmagent.events.errors import CorruptLog, OutcomeUnknown
from pmagent.events.event import Tail
from pmagent.events.verify import verify_log
from tests.support.effort import examples
from tests.support.logs import (
    FOLDER,
    HEAD_PATH,
    LOG_ID,
    BatchWriter,
    all_events,
    draft,
    head_bytes,
    lines_of,
    open_segments,
    segment_paths,
    sums,
    write_log,
)
from tests.support.memory_disk import MemoryDisk

batches = st.lists(st.tuples(st.integers(1, 6), st.sampled_from([10, 60, 400, 1500])), min_size=1, max_size=12)


class Crash(BaseException):
    """The process ends here."""


def after(count: int) -> Callable[[str, str], None]:
    """Crashes at the operation after ``count`` others."""
    left = [count]

    def before(_operation: str, _path: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Crash

    return before


def run(disk: MemoryDisk, work: list[tuple[int, int]], acknowledged: list[str], segment_bytes: int) -> None:
    """Open the log and append batches until a crash, noting the sums of what was acknowledged."""
    storage = open_segments(disk, segment_bytes)
    writer = BatchWriter(storage)
    found = sums(all_events(disk))
    assert found[: len(acknowledged)] == acknowledged
    acknowledged[:] = found  # what opening found is durable, too
    if not found:
        writer.create(LOG_ID)
        acknowledged[:] = sums(all_events(disk))
    for number, (count, size) in enumerate(work):
        writer.write([draft(len(acknowledged) + n, size) for n in range(count)])
        acknowledged[:] = sums(all_events(disk))
        if number % 4 == 3:
            storage.settle()
    storage.close()


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lives=st.lists(
        st.tuples(batches, st.integers(0, 70), st.sampled_from(["process", "power", "power, some kept"])), min_size=1,
        max_size=5,
    ),
    segment_bytes=st.sampled_from([500, 2000, 1 << 20]), seed=st.integers(0, 2**32),
)
def test_no_crash_at_any_operation_loses_what_was_acknowledged(
    lives: list[tuple[list[tuple[int, int]], int, str]], segment_bytes: int, seed: int
) -> None:
    """Process and power crashes, one after the other, in writing, rolling and opening."""
    disk, random, acknowledged = MemoryDisk(), Random(seed), list[str]()
    for work, operations, kind in lives:
        disk.before = after(operations)
        try:
            run(disk, work, acknowledged, segment_bytes)
        except Crash:
            event("crashed")
        disk.before = lambda _operation, _path: None
        if kind != "process":
            disk = disk.power_loss((lambda: random.random() < 0.5) if "kept" in kind else (lambda: False))
    run(disk, [(1, 10)], acknowledged, segment_bytes)
    result = verify_log(FOLDER, disk, decode=True)
    assert result.ok
    assert result.beyond_bytes == 0
    assert sums(all_events(disk)) == acknowledged


@settings(max_examples=examples(200), deadline=None)
@given(
    work=batches, fails_at=st.integers(0, 60),
    operation=st.sampled_from(["append", "sync", "write_at", "create", "rename", "sync_folder", "seal", "full"]),
    power=st.booleans(),
)
def test_a_failing_disk_poisons_and_what_was_acknowledged_is_there_after(
    work: list[tuple[int, int]], fails_at: int, operation: str, power: bool
) -> None:
    disk, acknowledged = MemoryDisk(), list[str]()
    run(disk, [(1, 10)], acknowledged, 2000)
    left = [fails_at]

    def before(name: str, _path: str) -> None:
        if name == operation:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(5, "Input/output error")

    if operation == "full":
        disk.room = fails_at * 40
    else:
        disk.before = before
    try:
        run(disk, work, acknowledged, 2000)
    except (OutcomeUnknown, OSError) as error:
        event(type(error).__name__)
    disk.before, disk.room = (lambda _operation, _path: None), None
    run(disk.power_loss() if power else disk, work, acknowledged, 2000)


@settings(max_examples=examples(300), deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(1, 4), st.sampled_from([10, 400])), min_size=2, max_size=8), data=st.data())
def test_a_bit_flip_in_what_a_witness_covers_is_refused_and_elsewhere_never_cuts_before_it(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """The witness: HEAD, wherever it stands, or an intact later batch."""
    disk = MemoryDisk()
    tails = [Tail(), *write_log(disk, [], 1 << 20)]
    for count, size in sizes:
        tails += write_log(disk, [count], 1 << 20, size=size)
    head = data.draw(st.sampled_from(tails))
    disk.put(HEAD_PATH, head_bytes(head))
    pristine = sums(all_events(disk, until=head.position))
    line = data.draw(st.sampled_from(lines_of(disk)))
    at = data.draw(st.integers(line.start, line.end - 1))
    disk.contents[line.path].data[at] ^= 1 << data.draw(st.integers(0, 7))
    found = None
    try:
        storage = open_segments(disk, 1 << 20)
        storage.close()
    except CorruptLog as error:
        found = (error.offset, error.position)
    if line.position <= max(head.position, tails[-2].position) or found is not None:
        assert found == (line.start, line.position)
    else:
        assert storage.tail().position == line.position - 1 >= head.position
        assert sums(all_events(disk))[: len(pristine)] == pristine


@settings(max_examples=examples(200), deadline=None)
@given(work=batches, garbage=st.binary(max_size=3000), cut=st.integers(0, 3000))
def test_bytes_behind_the_durable_end_are_cut_and_kept(work: list[tuple[int, int]], garbage: bytes, cut: int) -> None:
    disk, acknowledged = MemoryDisk(), list[str]()
    run(disk, work, acknowledged, 2000)
    newest = segment_paths(disk)[-1]
    first, *others = disk.read(segment_paths(disk)[0]).splitlines(keepends=True)
    stale = b"".join((first[1 + cut % (len(first) - 1) :], *others))  # no torn write leaves a whole line of elsewhere
    for tail in (garbage, stale, bytes(600) + stale):
        torn = disk.copy()
        torn.put(newest, disk.read(newest) + tail)
        storage = open_segments(torn, 2000)
        assert sums(all_events(torn)) == acknowledged
        if tail:
            assert storage.recovered is not None
            assert torn.read(f"{FOLDER}/{storage.recovered.kept_as}") == tail
        storage.close()
