"""The log, live, as server-sent events (WHATWG HTML, section 9.2)."""
