"""Attacks on releases: arrays in, arrays out, compiled."""
