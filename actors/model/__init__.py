"""The model gateway: every question to a model passes here, within its run's limits (DESIGN §3, models)."""
