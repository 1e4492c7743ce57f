"""Reads code that nobody here wrote, by its syntax tree."""
