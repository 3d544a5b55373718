"""Version of the package, as releases, registers and reports state it."""

__version__ = "0.3.0"
