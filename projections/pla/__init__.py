"""Sessions of the PLA: the audit trail that each leaves, and its job, computed from its events (DESIGN §4)."""
