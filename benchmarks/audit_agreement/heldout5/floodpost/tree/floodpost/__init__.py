"""Flood warnings for a municipality."""
