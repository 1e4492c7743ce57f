"""Reads PDFs, in a process of its own."""
