"""Commands that answer a question without writing a folder: what can be named, advice, sensitivity, errors on measurements."""

from __future__ import annotations

import difflib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from .errors import InputError, NoPlanError, RunError
from .results import Picture

if TYPE_CHECKING:
    import polars
    from typing_extensions import Unpack

    from .types import ScenarioKeys

#: A file in TOML, or its keys as a dictionary.
Specification = Union[str, "os.PathLike[str]", Mapping[str, Any], None]
#: The interpreter's words that run the command line; the package's own folder goes first, wherever it is.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from haversack.__main__ import main; sys.exit(main())"


class Record(Dict[str, Any]):
    """An answer as a dictionary whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"no attribute {name!r}; there are {', '.join(self)}") from None
        return Record(value) if type(value) is dict else value

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]

    def _repr_html_(self) -> str:
        shown = {key: value for key, value in self.items() if not isinstance(value, (dict, list))}
        return _table([shown], across=False)


class Run(Record):
    """A simulated run. Its keys are those of `haversack simulate --format json` (docs/columns.md)."""

    def __repr__(self) -> str:
        scenario = self.get("scenario", {})
        of = f"{scenario.get('model')}, batch {scenario.get('batch')}, on {scenario.get('device')}, {scenario.get('policy')}"
        if self.get("status") != "ok":
            return f"<Run {of}: {self.get('status')}>"
        time, energy, peak = self["iteration_time_s"], self["energy_j"], self["peak_memory_bytes"]
        return f"<Run {of}: {time:.3g} s, {energy:.3g} J, peak {peak / 1e6:.4g} MB>"


class Rows(List[Record]):
    """A table of an answer: a list of its rows."""

    def frame(self) -> polars.DataFrame:
        """The rows as a polars frame; numbers are numbers."""
        try:
            import polars
        except ImportError as missing:
            raise ImportError("frames need polars: pip install polars") from missing
        return polars.DataFrame([dict(row) for row in self], infer_schema_length=None, strict=False)

    def select(self, *names: str) -> Rows:
        """The rows with these columns only. Raises InputError for a column that is not there, with the nearest."""
        for name in names if self else ():
            if name not in self[0]:
                near = "".join(f"; did you mean {near!r}?" for near in difflib.get_close_matches(name, self[0], 1))
                raise InputError(f"select: no column {name!r}{near}")
        return Rows(Record((name, row[name]) for name in names) for row in self)

    def _repr_html_(self) -> str:
        return _table(self)


class Answer(Record):
    """The answer of a command, with its tables as `Rows`."""

    def __init__(self, answer: Mapping[str, Any], picture: Optional[Picture] = None) -> None:
        super().__init__(answer)
        self._picture = picture

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            return Rows(Record(row) for row in value)
        return value

    def _longest(self) -> Rows:
        tables = [getattr(self, name) for name, value in self.items() if isinstance(value, list)]
        return max((table for table in tables if isinstance(table, Rows)), key=len, default=Rows())

    def frame(self) -> polars.DataFrame:
        """The longest of its tables as a polars frame."""
        return self._longest().frame()

    def plot(self) -> Picture:
        """The figure that the command draws; a notebook shows it."""
        if self._picture is None:
            raise InputError("plot: this command draws no figure, or nothing fits")
        return self._picture

    def _repr_html_(self) -> str:
        return self._longest()._repr_html_()


def _table(rows: Sequence[Mapping[str, Any]], across: bool = True) -> str:
    """Rows as a table in HTML: a column for each key, or a row for each."""

    def cell(value: Any) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
        return html.escape(text)

    if not across:
        lines = [f"<tr><th>{cell(key)}</th><td>{cell(value)}</td></tr>" for row in rows for key, value in row.items()]
        return f"<table>{''.join(lines)}</table>"
    names = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (dict, list))))
    head = "".join(f"<th>{cell(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(name))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _flags(keys: Mapping[str, Any]) -> Iterator[str]:
    """Keywords as flags: `memory_budget="30%"` is `--memory-budget=30%`; None and False are left out."""
    for key, value in keys.items():
        flag = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            yield flag
        elif isinstance(value, Mapping):
            yield from (f"{flag}={name}={'on' if of is True else 'off' if of is False else of}" for name, of in value.items())
        else:
            yield f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"


def _in_python(message: str) -> str:
    """A message that names flags, with the keywords instead: `--memory-budget` is `memory_budget=`."""
    return re.sub(r"--([a-z][a-z-]*)", lambda found: found.group(1).replace("-", "_") + "=", message)


def ask(command: str, *words: str, **keys: Any) -> Any:
    """The JSON that a command prints. Raises the exception of its exit code, with the message that it prints."""
    line = [command, *words, *_flags(keys), "--format=json"]
    package = str(Path(__file__).absolute().parent.parent)
    ended = subprocess.run([sys.executable, "-c", _PROGRAM, package, *line], capture_output=True, text=True, encoding="utf-8")
    if ended.returncode == 0:
        return json.loads(ended.stdout)
    message = _in_python(re.sub(r"^(error|haversack): ", "", ended.stderr.strip().split("\n\n")[0]))
    if ended.returncode == 130:
        raise KeyboardInterrupt
    if ended.returncode == 3:
        raise NoPlanError(message, result=json.loads(ended.stdout) if ended.stdout.strip() else None)
    raise InputError(message) if ended.returncode == 2 else RunError(message)


def _on_scenario(command: str, scenario: Specification, draws: bool, keys: Dict[str, Any]) -> Answer:
    """The answer of a command that takes a scenario, with its figure if it draws one."""
    if isinstance(scenario, Mapping):
        scenario, keys = None, {**scenario, **keys}
    file = [] if scenario is None else [os.fspath(scenario)]
    folder = Path(tempfile.mkdtemp(prefix="haversack-"))
    drawn = folder / f"{command}.svg"
    try:
        found = ask(command, *file, **keys, **({"plot": drawn} if draws else {}))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    answer = Answer(found, Picture(drawn) if drawn.exists() else None)
    weakref.finalize(answer, shutil.rmtree, folder, ignore_errors=True)
    return answer


def advise(scenario: Specification = None, *, by: str = "time", **keys: Unpack[ScenarioKeys]) -> Answer:
    """Tries every policy on a device and a network: which fit, the best first, and why the others do not.

    `scenario` is a file or a dictionary; keywords win over it; `by` is "time" or "energy". `frame()` has a row for each policy.

    Raises InputError, or NoPlanError where no policy fits.
    """
    return _on_scenario("advise", scenario, True, {"by": by, **keys})


def sensitivity(
    scenario: Specification = None, *, by: str = "20%", top: Optional[int] = None, **keys: Unpack[ScenarioKeys]
) -> Answer:
    """Moves each constant that a run uses by `by`, up and down; `frame()` has a row for each, the largest effect first.

    Raises InputError, NoPlanError or RunError.
    """
    return _on_scenario("sensitivity", scenario, True, {"by": by, "top": top, **keys})


def validate(*sets: str, what: Optional[str] = None, role: Optional[str] = None) -> Answer:
    """Simulates what was measured on real machines, and gives the error of each number: all sets, or those named.

    Raises InputError, with the nearest name of a set.
    """
    return Answer(ask("validate", *sets, what=what, role=role))


def compare(before: Union[str, "os.PathLike[str]"], after: Union[str, "os.PathLike[str]"]) -> Answer:
    """The rows that differ between two folders of sweeps or reproductions, the largest difference first."""
    return Answer(ask("compare", os.fspath(before), os.fspath(after)))


def _listed(kind: str) -> Rows:
    return Rows(Record(row) for row in ask("list", kind))


def devices() -> Rows:
    """The devices that can be named, with their chips and memory."""
    return _listed("devices")


def models() -> Rows:
    """The networks that can be named."""
    return _listed("models")


def policies() -> Rows:
    """The policies that can be named, with their papers and parameters."""
    return _listed("policies")


def stacks() -> Rows:
    """The software stacks that can be named."""
    return _listed("stacks")
