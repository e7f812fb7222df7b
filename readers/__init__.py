"""Policies that compose evidence from a pool: pure computation on arrays."""
