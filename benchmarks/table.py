"""The table at the end: what, figure, the raw limit or peer of the same run, ratio, target, reached or not."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import Row, Spread

_HEADINGS = ("what", "figure (median)", "min to max", "beside it", "its figure", "ratio", "target", "reached")


def table(rows: Sequence[Row]) -> str:
    """The rows in columns, notes in lines of their own."""
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    lines = [_line(_HEADINGS, widths), _line(["-" * width for width in widths], widths)]
    for row, line in zip(rows, cells[1:], strict=True):
        lines.append(_line(line, widths))
        if row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        f"{number(row.figure.median)} {row.unit}",
        _range(row.figure),
        row.beside,
        number(row.limit.median) if row.limit is not None else "",
        f"{row.ratio:.2f}" if row.ratio is not None else "",
        row.target,
        "" if row.reached is None else "yes" if row.reached else "NO",
    )


def _range(figure: Spread) -> str:
    return f"{number(figure.low)} to {number(figure.high)}" if figure.low != figure.high else ""


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
