"""What happens, as it happens: the log as server-sent events (WHATWG HTML, section 9.2)."""
