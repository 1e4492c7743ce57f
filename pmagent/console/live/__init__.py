"""What happens, as it happens: the log as server-sent events."""
