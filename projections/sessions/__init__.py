"""Sessions of the PLA: the audit trail that each leaves, and its job, computed from its events (docs/design.md §7)."""
