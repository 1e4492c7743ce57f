"""The table of a run on a terminal: drawn over itself, and over nothing else, whatever becomes of the terminal."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from pmagent.cli.job_screen import _Panel
from pmagent.cli.output import Output
from tests.support.terminals import Terminal


class Sink(io.BytesIO):
    """A stream that a terminal shows."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Show it, as a line discipline hands it on."""
        self._terminal.feed(data.replace(b"\n", b"\r\n"))
        return len(data)

    def isatty(self) -> bool:
        """Yes."""
        return True


SIZES = st.tuples(st.integers(8, 40), st.integers(3, 12))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("draw"), st.lists(st.just("said"), max_size=2), st.integers(1, 12)),
        st.tuples(st.just("resize"), SIZES),
    ),
    max_size=12,
)


@given(size=SIZES, steps=STEPS)
def test_what_stood_there_stays_and_the_last_table_stands_below_it_whole(
    size: tuple[int, int], steps: list[tuple[object, ...]]
) -> None:
    terminal = Terminal(*size)
    output = Output(io.BytesIO(), Sink(terminal), {"NO_COLOR": "1"})
    panel = _Panel(output)
    before = [f"b{number}" for number in range(3)]
    for line in before:
        output.note(line)
    said: list[str] = []
    last: list[str] = []
    counts: dict[str, int] = {}
    for number, (kind, *rest) in enumerate(steps):
        if kind == "resize":
            terminal.resize(*rest[0])  # type: ignore[misc]
            continue
        lines = [f"s{number}.{at}" for at in range(len(rest[0]))]  # type: ignore[arg-type]
        said += lines
        count = min(int(rest[1]), terminal.rows - 2) or 1  # type: ignore[call-overload]
        last = [f"r{number}.{at}".ljust(terminal.columns - 1, "x")[: terminal.columns - 1] for at in range(count)]
        counts[f"r{number}"] = count
        panel.draw([[line] for line in lines], [[row] for row in last], terminal.columns, terminal.rows)
    shown = terminal.text.split("\n")
    assert shown[:3] == before
    assert [line for line in shown if line.startswith("s")] == said
    heads = [line.partition("x")[0].split(".")[0] for line in shown if line.startswith("r")]
    assert all(heads.count(table) == counts[table] for table in heads), "a table is whole, or is not there"
    if last and steps[-1][0] == "draw":
        assert shown[-len(last) :] == last
