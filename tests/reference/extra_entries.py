"""A plugin of pytest that lets the package find the entries of another folder, named by ANON_EXTRA_ENTRIES, too.

The folder has `methods/` and `measures/`, which become part of the package's own.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

FOLDER = Path(os.environ["ANON_EXTRA_ENTRIES"])


class WithFolder(PathFinder):
    """Finds packages as usual, and adds a folder to those of entries."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual spec; for `duckdb_anon.methods` and `duckdb_anon.measures` with one more folder."""
        spec = super().find_spec(fullname, path, target)
        if spec is not None and fullname in ("duckdb_anon.methods", "duckdb_anon.measures"):
            spec.submodule_search_locations = [*(spec.submodule_search_locations or ()), str(FOLDER / fullname[12:])]
        return spec


sys.meta_path.insert(0, WithFolder)
