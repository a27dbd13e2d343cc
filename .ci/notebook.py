"""Executes a notebook, and compares its outputs with the recorded ones.

Usage: notebook.py NOTEBOOK FOLDER [--record]. FOLDER is the current folder of the notebook. Outputs of cells with the tag
"same" must equal the recorded ones. Those of other cells depend on compilers and packages, and need only be there.
"""

import pathlib
import sys

import nbclient
import nbformat


def text(cell):
    """Returns what a cell has printed."""
    return "".join(output.get("text", "") for output in cell.outputs)


def main(file, folder, *options):
    recorded = nbformat.read(file, as_version=4)
    notebook = nbformat.read(file, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}})
    client.execute()
    if options == ("--record",):
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        notebook.metadata = recorded.metadata
        nbformat.write(notebook, file)
        return 0
    problems = 0
    for old, new in zip(recorded.cells, notebook.cells):
        if old.cell_type != "code":
            continue
        is_same = text(old) == text(new) if "same" in old.metadata.get("tags", []) else bool(text(new)) == bool(text(old))
        if not is_same:
            problems += 1
            print(f"{file}: this cell printed something else:\n{old.source}\n-- recorded:\n{text(old)}-- now:\n{text(new)}")
    print(f"{pathlib.Path(file).name}: {problems} cells differ")
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
