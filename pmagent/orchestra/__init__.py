"""Runs of Orchestra from outside: what a command asks for, how it follows a run, and what it tells of it."""
