"""The process that reads PDFs, on a machine that lacks PyMuPDF."""

from __future__ import annotations

import sys

from pmagent.actors.audit.sources.pdf.child import main

if __name__ == "__main__":
    sys.modules["pymupdf"] = None  # type: ignore[assignment]
    main()
