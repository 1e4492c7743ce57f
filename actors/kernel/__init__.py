"""The kernel watcher: reads the kernel surfaces and decides the mode (docs/design.md §12.1, §12.2)."""
