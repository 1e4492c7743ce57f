"""The audit: detectives, judges and the chief justice as nodes of one graph, run by one actor (docs/design.md §15)."""
