"""Audits: what each leaves for people and programs, computed from its events (docs/design.md §7)."""
