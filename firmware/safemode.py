"""Where CircuitPython itself failed, it would come up with a drive and a console, and a console can type. So the board
starts anew instead, until somebody holds its button (that kind of safe mode runs no program at all)."""

import microcontroller


def main() -> None:
    """Start anew."""
    microcontroller.reset()


if __name__ == "__main__":
    main()
