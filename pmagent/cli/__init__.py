"""The command line (docs/design.md §11). Commands are imported when they are called: start-up stays short."""
