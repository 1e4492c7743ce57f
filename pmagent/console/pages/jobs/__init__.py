"""What the pages of runs and audits show, made ready in a thread: the pages only render it."""
