"""Evidence from what was read: the code's syntax trees, the history, the report."""
