"""The vocabulary of the log: the payload types of every area and their JSON Schemas (docs/design.md §3.4)."""
