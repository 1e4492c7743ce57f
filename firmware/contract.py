"""Which contracts this firmware was built for (python -m contracts.generate)."""

CONTRACT_VERSION = "1.0.0"
CONTRACT_HASH = "ff7828e4d03891d3da3186bd36275aed300f66a818a2ca7d109ea9a50821d64f"
