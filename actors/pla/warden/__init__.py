"""The warden: sessions, modes, approvals; what may be typed (docs/design.md §16.3, §16.4)."""
