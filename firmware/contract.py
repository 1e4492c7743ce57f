"""Which contracts this firmware was built for (python -m pmagent.contracts.generate)."""

CONTRACT_VERSION = "1.1.0"
CONTRACT_HASH = "a907e69b79ddb5fa2808a155018f18b547f5e14997f460e60266c81b3eb345c0"
