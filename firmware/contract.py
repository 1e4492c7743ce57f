"""Which contracts this firmware was built for (python -m contracts.generate)."""

CONTRACT_VERSION = "1.0.0"
CONTRACT_HASH = "249bf496800b04a1eb0a97e70121a7fb2687e5696b67d6f6aa4ebce03e6da3e0"
