"""The results of functions that write a folder: the paths of its files, and its tables as polars frames."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    import polars

    from .answers import Rows


class Picture:
    """A figure of a folder; a notebook shows it."""

    def __init__(self, path: Path) -> None:
        #: The SVG file; the same folder has a PNG of the same name.
        self.path = path

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return f"Picture({str(self.path)!r})"


class Folder:
    """A folder of results. Without `out=` it is a temporary one that is deleted with this object."""

    def __init__(self, folder: Path, report: str) -> None:
        #: The folder.
        self.folder = folder
        #: The output of the command line.
        self.report = report

    @property
    def run(self) -> Dict[str, Any]:
        """The specification, the version and digests, and the names of all files: `run.json`."""
        record: Dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        return record

    @property
    def pictures(self) -> List[Picture]:
        """The figures: fronts, curves."""
        return [Picture(self.folder / name) for name in self.run["outputs"] if name.endswith(".svg")]

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _frame(self, name: str) -> polars.DataFrame:
        try:
            import polars
        except ImportError as missing:
            hint = f"frames need polars: pip install polars; the table itself is {self._path(name)}"
            raise ImportError(hint) from missing
        path = self._path(name)
        return polars.read_parquet(path) if path.suffix == ".parquet" else polars.read_csv(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"


class Sweep(Folder):
    """A row for each run, and the fronts."""

    @property
    def path(self) -> Path:
        """The table, as Parquet; docs/columns.md lists its columns."""
        return self._path("results.parquet")

    def frame(self) -> polars.DataFrame:
        """The table as a polars frame."""
        return self._frame("results.parquet")

    def rows(self) -> Rows:
        """The table without polars: numbers are numbers, and an empty cell is None."""
        from .answers import Record, Rows

        with open(self._path("results.csv"), newline="", encoding="utf-8") as file:
            return Rows(Record((name, _value(cell)) for name, cell in row.items()) for row in csv.DictReader(file))


def _value(cell: str) -> Any:
    """The number or text of a cell of a table in CSV."""
    if cell in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


class Training(Folder):
    """A row for each epoch, and the curves."""

    @property
    def path(self) -> Path:
        """The table, as Parquet."""
        return self._path("epochs.parquet")

    def frame(self) -> polars.DataFrame:
        """The table as a polars frame."""
        return self._frame("epochs.parquet")


class Federation(Folder):
    """Rounds, the work of each client in them, and the clients that were left out."""

    @property
    def path(self) -> Path:
        """The table of rounds, as Parquet."""
        return self._path("rounds.parquet")

    def rounds(self) -> polars.DataFrame:
        """A row for each round."""
        return self._frame("rounds.parquet")

    def clients(self) -> polars.DataFrame:
        """A row for each client of each round."""
        return self._frame("clients.parquet")

    def exclusions(self) -> polars.DataFrame:
        """A row for each client that a round left out, with the reason."""
        return self._frame("exclusions.parquet")


class Reproduction(Folder):
    """A row for each number of the papers, and the page."""

    @property
    def path(self) -> Path:
        """The table, as CSV."""
        return self._path("cells.csv")

    @property
    def page(self) -> Path:
        """The page of all figures."""
        return self._path("index.html")

    def frame(self) -> polars.DataFrame:
        """The table as a polars frame."""
        return self._frame("cells.csv")
