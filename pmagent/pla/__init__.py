"""The PLA beside the daemon's host: what is asked of it, what it holds in memory, the device's line
(docs/design.md §16)."""
