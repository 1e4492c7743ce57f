"""What may be said: the payload types of every area, their JSON Schemas and their fixtures (docs/design.md §3.4)."""
