"""Which contracts this firmware was built for (python -m pmagent.contracts.generate)."""

CONTRACT_VERSION = "1.0.0"
CONTRACT_HASH = "edc0591b642eb3e596c7319273b489530ab21411df03a102277721e5522755c0"
