"""The line to the device, without input and output: lines, the link's state, and what is said for each request
(docs/hid-protocol.md)."""
