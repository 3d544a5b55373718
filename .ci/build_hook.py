"""Build hook: a wheel carries the machine code in the folder DUCKDB_ANON_MACHINE_CODE, for one Python and platform."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface):
    """Adds the folder that `.ci/machine_code` has filled; without one the wheel is for every Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what the wheel contains besides the package."""
        folder = os.environ.get("DUCKDB_ANON_MACHINE_CODE")
        if folder:
            build_data["force_include"][str(Path(folder).resolve())] = "duckdb_anon/kernels/machine_code"
            build_data["pure_python"], build_data["infer_tag"] = False, True
