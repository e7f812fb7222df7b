"""The stages of a run: where readers meet storage and where models are called."""
