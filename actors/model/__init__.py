"""The model gateway: every question to a model passes here, within its run's limits (docs/design.md §4.5)."""
