"""The live workspace: host, daemon, operations, and the client that asks it."""
