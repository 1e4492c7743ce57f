"""The content of the pages of runs and audits, made ready in a thread: the pages only render it."""
