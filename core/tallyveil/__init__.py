"""What a provider and an aggregator must agree on: surveys, mechanisms, guarantees and the wire."""

__version__ = "0.1.0"
