"""Reading PDFs: what a report says and shows, found out by PyMuPDF in a process of its own (rulings B, Doc, Vision)."""
