"""The one way out of a sandbox: a filtering proxy on its own loopback."""
