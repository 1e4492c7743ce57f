"""The warden: sessions, modes, approvals; what may be typed (rulings C)."""
