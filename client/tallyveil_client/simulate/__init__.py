"""Trying a mechanism on records of one's own: no network, nothing charged, nothing stored."""
