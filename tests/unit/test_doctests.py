"""Every example in a docstring of the package runs and shows what it gives."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import duckdb_anon

PACKAGE = Path(duckdb_anon.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


def test_there_are_examples() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_of_a_module_give_what_they_show(path: Path) -> None:
    name = ".".join(["duckdb_anon", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("duckdb_anon"):
            raise
        pytest.skip(f"{error.name} is not installed")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
