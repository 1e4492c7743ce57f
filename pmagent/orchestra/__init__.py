"""Runs of Orchestra as commands see them: requesting one, following it, and reporting on it."""
