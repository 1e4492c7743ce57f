"""The process that reads PDFs, brought down by every page that says so, as a damaged image may bring MuPDF down."""

from __future__ import annotations

import os
from typing import Any

from pmagent.actors.audit.sources.pdf import gallery, gathering
from pmagent.actors.audit.sources.pdf.child import main
from pmagent.actors.audit.sources.pdf.layout import Line
from pmagent.actors.audit.sources.pdf.lines import lines


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
