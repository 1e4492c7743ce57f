"""The front door: command line, daemon and the Python API that other programs import."""

__version__ = "0.2.0.dev0"
