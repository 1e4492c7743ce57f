"""Reading PDFs: what a report says and shows, found out by PyMuPDF in a process of its own (docs/design.md §15.5)."""
