"""The documents of the orchestrator assistant."""
