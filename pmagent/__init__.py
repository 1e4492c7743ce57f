"""The front door: command line, daemon and the Python API that other programs import."""

__version__ = "0.3.0.dev0"
