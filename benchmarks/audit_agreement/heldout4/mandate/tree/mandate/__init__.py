"""The first desk of a law clinic."""
