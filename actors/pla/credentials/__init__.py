"""Credentials in what is to be typed: found, and masked before anything is recorded (docs/design.md §16.5)."""
