"""Guests at the edge: what connects agents that pmagent did not write to the log, and reads what they left behind."""
