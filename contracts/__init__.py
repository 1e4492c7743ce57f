"""What may be said: the payload types of every area, their JSON Schemas and their fixtures (DESIGN §2, §6)."""
