# SPDX-License-Identifier: Apache-2.0
"""notebooks.py ROOT - run the notebooks that the site makes of tutorials, each in a folder below this one"""

import importlib.util
import os
import sys

import nbclient
import nbformat

root = sys.argv[1]
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("make_site", os.path.join(root, "docs/site/make_site.py"))
site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site)


def run(text, folder):
    """A notebook, run from its first cell to its last."""
    os.makedirs(folder)
    found = nbformat.reads(text, as_version=4)
    nbformat.validate(found)
    client = nbclient.NotebookClient(found, timeout=600, resources={"metadata": {"path": folder}})
    with open(f"{folder}.log", "w") as log:  # of the kernel, which says much
        client.execute(stderr=log)
    return found


def read(path):
    with open(os.path.join(root, path)) as f:
        return f.read()


for path in site.NOTEBOOKS:
    text = read(path)
    key = path.removesuffix(".md").replace("/", ".")
    # What a test of the page checks at its end is the last cell.
    last = f"\n```python\n{read(f'tests/docs/with/{key}_after.py')}```\n"
    notebook = run(site.notebook(text + last), key)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    blocks = text.count("```sh\n") + text.count("```python\n")
    assert len(cells) == blocks + 1 and all(cell.execution_count for cell in cells), (path, len(cells), blocks)
    said = sum(len(cell.outputs) for cell in cells)
    print(f"{path}: {len(cells)} cells, {said} outputs")

# A cell that fails is noticed, of both languages.
for number, bad in enumerate(("```sh\nfalse\ntrue\n```\n", "```python\nassert False\n```\n")):
    try:
        run(site.notebook("# Bad\n\n" + bad), f"bad{number}")
    except nbclient.exceptions.CellExecutionError:
        continue
    sys.exit(f"this went unnoticed: {bad}")
