"""Configured checks and guards: the checker, and what runs them (docs/checks.md)."""
