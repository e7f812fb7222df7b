"""Prefect flows, the protocol and the command line."""
