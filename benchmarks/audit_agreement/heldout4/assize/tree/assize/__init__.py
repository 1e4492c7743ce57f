"""assize: a small court for repositories."""
