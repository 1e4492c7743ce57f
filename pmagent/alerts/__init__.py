"""The alert inbox, and notifications: operations, channels, and the service that sends (docs/running.md)."""
