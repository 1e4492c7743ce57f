"""``pmagent`` and ``python -I -m pmagent``: the origin check first, then the command line."""

from __future__ import annotations

from pmagent import _origin


def main() -> None:
    """Run the command line. Nothing of ours is imported before the check has passed."""
    _origin.check()
    from pmagent.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
