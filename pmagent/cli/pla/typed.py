r"""An action's content, shown so that nothing of it is hidden: each character of a text, each key, each step.

Text that can be typed is printable ASCII, tab and newline. A line of it stands between two bars, so that blanks at its
end are seen; ``⏎`` and ``→`` are the keys Enter and Tab, and neither they nor the bars can be part of the text. Where
the screen's encoding lacks them they would all look like a question mark: there ``\n``, ``\t`` and ``\\`` stand for
Enter, Tab and the backslash.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pmagent.cli.output import Output, Piece, Styled
from pmagent.pla.words import counted, hex_rows, steps

_SIGNS: Final = "⏎→│"
_MIN_COLUMNS: Final = 20


def show_typed(output: Output, action_type: str, payload: dict[str, Any], *, masked: bool, hexdump: bool) -> None:
    """The action, on several lines."""
    columns = max(_MIN_COLUMNS, output.columns - 16)
    for line in _lines(action_type, payload, columns, masked=masked, signs=output.shows(_SIGNS)):
        output.line(*line)
    if hexdump and action_type == "TYPE_TEXT":
        for row in hex_rows(payload["text"]):
            output.line(Styled(f"              {row}", "dim"))


def in_short(action_type: str, payload: dict[str, Any]) -> str:
    """The action on one line, for a list."""
    if action_type == "TYPE_TEXT":
        return f"type {_visible(payload['text'])}"
    if action_type == "KEY_COMBO":
        return f"keys {'+'.join(payload['keys'])}"
    if action_type == "MOUSE_MOVE":
        return f"move {payload['x']} {payload['y']}"
    return f"click {payload['button']}"


def _lines(
    action_type: str, payload: dict[str, Any], columns: int, *, masked: bool, signs: bool
) -> Iterator[list[Piece]]:
    if action_type == "KEY_COMBO":
        yield ["  keys        ", Styled(" + ".join(payload["keys"]), "bold"), ", pressed together"]
    elif action_type == "MOUSE_MOVE":
        yield ["  move        ", Styled(steps(payload["x"], payload["y"]), "bold")]
    elif action_type == "MOUSE_CLICK":
        yield ["  click       ", Styled(payload["button"], "bold")]
    else:
        text = payload["text"]
        if masked:
            yield ["  text        ", Styled("masked: this is not what would be typed", "yellow")]
        else:
            keys = (" (⏎)", " (→)") if signs else (" (\\n)", " (\\t)")
            yield [f"  text        {counted(text, *keys)}"]
        enter, bar = ("⏎", "│") if signs else ("\\n", "|")
        for row in _rows(text, enter, columns, signs=signs):
            yield [f"              {bar}", Styled(row, "bold"), bar]


def _rows(text: str, enter: str, columns: int, *, signs: bool) -> Iterator[str]:
    """The text in rows: one ends behind each newline, and where the screen does."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        shown = _visible(line, signs=signs) + (enter if number < len(lines) - 1 else "")
        if not shown and number:
            return
        for at in range(0, max(1, len(shown)), columns):
            yield shown[at : at + columns]


def _visible(text: str, *, signs: bool = True) -> str:
    if signs:
        return text.replace("\t", "→").replace("\n", "⏎")
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


