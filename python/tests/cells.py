"""Runs the cells of a notebook, or the Python blocks of a page, one after the other, as a reader would.

A cell that needs a missing package is skipped, and so are later cells that need its results.
"""

import ast
import json
import os
import re
import sys
import tempfile
from pathlib import Path


def cells(path):
    """The code of each cell, and the folder in which it runs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        found = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return ["".join(source) for source in found]
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(source, names):
    """Runs a cell; its last value is shown as in a notebook."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    for show in ("_repr_svg_", "_repr_html_"):
        if hasattr(shown, show):
            assert getattr(shown, show)(), f"{shown!r} shows nothing"


def main(path):
    sources = cells(path)
    assert len(sources) >= 5, f"{path} has {len(sources)} cells"
    names, skipped = {"__name__": "__main__"}, []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path.parent.parent / "examples", Path(folder) / "examples")
        os.chdir(folder)
        for number, source in enumerate(sources, 1):
            try:
                run(source, names)
            except ImportError as missing:
                skipped.append(f"cell {number} skipped: {missing}")
            except NameError as missing:
                if not skipped:
                    raise
                skipped.append(f"cell {number} skipped: {missing}")
        os.chdir("/")
    print("\n".join([*skipped, f"{path.name}: {len(sources) - len(skipped)} of {len(sources)} cells ran"]), file=sys.stderr)
    assert len(skipped) < len(sources)


main(Path(sys.argv[1]).resolve())
