"""The PLA's world: a device with the real firmware's core, a line that damages what it carries, and operators."""
