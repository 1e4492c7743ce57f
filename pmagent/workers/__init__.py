"""Attempts of tasks on other hosts: placing them, and the worker that makes them (docs/machines.md)."""
