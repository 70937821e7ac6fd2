# SPDX-License-Identifier: Apache-2.0
"""page_types.py FOLDER PAGE... - the Python of documents as files, for type checkers

A page becomes one file, in which its blocks have the lines that they have on the page.  A block that is a
file of its own becomes one.  On the first line, before any block:

    what the page's reader has already: tests/docs/with/PAGE_before.py, which the blocks are run behind
    of a block that is not run, such as one of another loader, the names that it and the page do not define

Those names are Any, and so are the packages that are not installed, of which STUBS says all that is there
to say.  Everything else is what the checkers find, above all libshard itself.
"""

import ast
import builtins
import os
import shutil
import sys

sys.path.insert(0, "tests/docs")
import pages

# Not installed beside PyTorch, or without types.  Of libshard's modules for them no name is left out.
STUBS = ("accelerate", "ffcv", "grain", "jax", "lightning", "torchdata", "torchtitan", "torchvision", "transformers")
MODULES = {"torchdata": ("stateful_dataloader", "nodes"), "torchtitan": ("components", "components.dataloader")}


def read(path):
    with open(path) as f:
        return f.read()


def names(code):
    """Names that code defines, and those that it reads."""
    made, used = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (made if isinstance(node.ctx, ast.Store) else used).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            made.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            made |= {(a.asname or a.name).split(".")[0] for a in node.names}
    return made, used


def main(folder, *paths):
    for package in STUBS:
        for module in ("", *MODULES.get(package, ())):
            where = os.path.join(folder, "stubs", package, *module.split("."))
            os.makedirs(where)
            with open(os.path.join(where, "__init__.pyi"), "w") as f:
                f.write("from typing import Any\ndef __getattr__(name: str) -> Any: ...\n")
    count = 0
    for path in paths:
        blocks, _ = pages.parse(path, read(path))
        blocks = [b for b in blocks if b.language == "python"]
        left = set(dir(builtins))
        name, text, head = pages.key_of(path).replace(".", "_"), "", "from typing import Any"
        before = f"tests/docs/with/{pages.key_of(path)}_before.py"
        if os.path.exists(before):
            shutil.copy(before, os.path.join(folder, f"before_{name}.py"))
            head += f"; from before_{name} import *"
            left |= names(read(before))[0]
        for block in blocks:
            if "not run" in block.marks:
                made, used = names(text + block.code)
                head += "".join(f"; {n}: Any = ..." for n in sorted(used - made - left))
                left |= used
            if "file" in block.marks:
                with open(os.path.join(folder, block.marks["file"]), "w") as f:
                    f.write("\n" * (block.line - 1) + block.code)
                continue
            text += "\n" * (block.line - 2 - text.count("\n")) + block.code
        if blocks:
            with open(os.path.join(folder, f"{name}.py"), "w") as f:
                f.write(f"{head}\n{text}")
            count += len(blocks)
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
