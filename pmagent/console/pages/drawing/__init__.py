"""Drawings for the pages: SVG, computed here."""
