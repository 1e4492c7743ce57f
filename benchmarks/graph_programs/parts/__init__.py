"""Modules that other programs of this folder import."""
