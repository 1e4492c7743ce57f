"""The kernel watcher: reads the kernel surfaces and decides the mode (rulings A)."""
