"""Measures that SQL alone cannot express, one file each."""
