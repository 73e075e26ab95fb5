"""Runs the cells of a notebook, or the Python blocks of a page, one after the other, as a reader would.

A cell that needs a missing package is skipped, and so are later cells that need its results. The outputs that a notebook
shows must be those of today; --write puts today's there, which needs PyTorch.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path


def cells(path):
    """The code cells: their source, and the outputs that they show."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [{"source": block, "outputs": None} for block in blocks]


def run(source, names):
    """Runs a cell; returns its outputs as a notebook stores them."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if shown is not None:
        data = {}
        for show, form in (("_repr_svg_", "image/svg+xml"), ("_repr_html_", "text/html")):
            if hasattr(shown, show):
                data[form] = getattr(shown, show)().splitlines(keepends=True)
                assert data[form], f"{shown!r} shows nothing"
        # A name of an object may have a folder that is another one tomorrow.
        data["text/plain"] = [type(shown).__name__ if data else repr(shown)]
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def write(path, found):
    """Stores the outputs, by the number of the cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, outputs in found.items():
        code[number - 1].update(outputs=outputs, execution_count=number)
        for output in outputs:
            if "execution_count" in output:
                output["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def same(shown, today):
    """Whether a cell shows what it gives today."""
    plain = lambda outputs: [output.get("text") or output["data"] for output in outputs]  # noqa: E731
    return plain(shown) == plain(today)


def main(path, writes=False):
    all_cells = cells(path)
    assert len(all_cells) >= 5, f"{path} has {len(all_cells)} cells"
    names, skipped, found = {"__name__": "__main__"}, [], {}
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path.parent.parent / "examples", Path(folder) / "examples")
        os.chdir(folder)
        for number, cell in enumerate(all_cells, 1):
            source = "".join(cell["source"])
            try:
                found[number] = run(source, names)
            except ImportError as missing:
                skipped.append(f"cell {number} skipped: {missing}")
            except NameError as missing:
                if not skipped:
                    raise
                skipped.append(f"cell {number} skipped: {missing}")
            # PyTorch may be missing, and what it measures differs each time.
            if not writes and cell["outputs"] is not None and "torch" not in source:
                assert same(cell["outputs"], found[number]), f"cell {number} shows old outputs: {path} --write"
        os.chdir("/")
    if writes:
        write(path, found)
    said = f"{path.name}: {len(all_cells) - len(skipped)} of {len(all_cells)} cells ran"
    print("\n".join([*skipped, said]), file=sys.stderr)
    assert len(skipped) < len(all_cells)


main(Path(sys.argv[1]).resolve(), "--write" in sys.argv)
