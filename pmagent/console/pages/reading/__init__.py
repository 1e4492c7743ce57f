"""What pages show of the log: read, sought through, checked, told; never written."""
