"""Slugs from titles."""
from slugkit.core import Slugger, SlugError, slugify
from slugkit.rules import Rule, RULES

__all__ = ["RULES", "Rule", "SlugError", "Slugger", "slugify"]
__version__ = "2.0.0"
