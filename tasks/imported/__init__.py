"""Candidate pools that other memory systems made: their form, their checks, their way into a lake."""
