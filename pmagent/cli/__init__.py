"""The command line (DESIGN §7). Commands are imported when they are called: start-up stays short."""
