"""The operator console: the pages where people watch, understand and approve (docs/design.md §18).

A process of its own beside the daemon. It reads the log as ``pmagent log`` does, asks the daemon as a command does, and
has no power of its own.
"""
