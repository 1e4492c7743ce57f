"""Guests: agents that pmagent did not write, and the gate before their tools."""
