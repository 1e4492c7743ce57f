"""The OA's front door for other programs (docs/design.md §12.6, §13): tools and guards, which only
read, and the reasoning programs, whose runs are recorded in the log."""
