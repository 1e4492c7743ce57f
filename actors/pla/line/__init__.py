"""The serial line, held: finding the device, the port, and what is heard on it becomes facts."""
