"""What other programs of this folder import."""
