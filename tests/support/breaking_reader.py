"""The process that reads PDFs, brought down by every page that says so, as a damaged image may bring MuPDF down."""

from __future__ import annotations

import os
from typing import Any

from actors.audit.pdf import gallery, gathering
from actors.audit.pdf.child import main
from actors.audit.pdf.layout import Line
from actors.audit.pdf.lines import lines


def breaking(page: Any, number: int) -> tuple[list[Line], int]:
    """The lines of the page, if it does not say BREAK."""
    found, hidden = lines(page, number)
    if any("BREAK" in line.text for line in found):
        os.abort()
    return found, hidden


def unrendered(*_: object) -> None:
    """No part of a page can be shown."""
    os.abort()


if __name__ == "__main__":
    setattr(gallery, "_shown", unrendered)  # noqa: B010 - the same
    setattr(gathering, "lines", breaking)  # noqa: B010 - it is not for others to import from there
    main()
