"""Fingerprints: sets of items a person has, and ways to publish them along a hierarchy."""
