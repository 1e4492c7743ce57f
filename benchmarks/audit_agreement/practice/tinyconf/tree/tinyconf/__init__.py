from .layers import Layers, ConfigError
