"""Documents of guests' sessions."""
