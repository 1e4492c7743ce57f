"""Audits: what each leaves for people and programs, computed from its events (DESIGN §4)."""
