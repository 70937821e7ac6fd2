# SPDX-License-Identifier: Apache-2.0
"""Type hints: the stubs of the core are as the core is, and nothing in Python goes without."""

import ast
import inspect
import pathlib
import re
import unittest
from typing import Literal, get_args, get_origin

import libshard
from libshard import _core, _types
from libshard._types import LoaderOptions

PACKAGE = pathlib.Path(libshard.__file__).parent
OURS = {
    "__new__",
    "__len__",
    "__getitem__",
    "__dlpack__",
    "__dlpack_device__",
    "__array__",
    "__array_interface__",
    "__cuda_array_interface__",
}
# What docs/PYTHON.md has a table for: the file and the function.
TABLES = {
    "libshard.Loader": "_loader.LoaderBase.__init__",
    "libshard.torch.Loader": "torch.Loader.__init__",
    "libshard.torch.ShardDataset": "torch.ShardDataset.__init__",
    "libshard.jax.Loader": "jax.Loader.__init__",
    "libshard.grain.IterDataset": "grain.IterDataset.__init__",
    "libshard.Image": "_images.Image",
    "libshard.Transform": "_transform.Transform",
    "libshard.Field": "_description.Field",
    "libshard.pack": "_pack.pack",
    "libshard.export": "_export.export",
    "libshard.Writer": "_writer.Writer.__init__",
    "libshard.open": "_dataset.open",
    "libshard.mix": "_mix.mix",
    "libshard.balanced": "_mix.balanced",
    "Dataset.split": "_selection.Selectable.split",
    "Dataset.folds": "_selection.Selectable.folds",
    "Dataset.verify": "_dataset.Dataset.verify",
    "Dataset.show": "_dataset.Dataset.show",
}
# These take the options of libshard.Loader, and have tables of what differs.
PASS_ON = ("libshard.torch.Loader", "libshard.jax.Loader", "libshard.grain.IterDataset")
# Exceptions and batches are made by libshard itself; Dataset is opened by libshard.open.
UNTABLED = {"Batch", "ChannelStats", "Dataset", "Mixture", "Preview", "Schema", "Stats", "VerifyReport"}
# What type checkers have to be told, and is no attribute: buffers have no method before 3.12, and
# names of NumPy's are looked up by another one; and the arguments of a class that is no __new__,
# which are held against its text.
TOLD = {"__buffer__", "__init__", "__getattr__"}


def differences(stub, runtime):
    """Names that only a stub or only the class or module has, and signatures that differ."""
    said = {n.name: n for n in stub.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    members = {n.target.id: ast.unparse(n.annotation) for n in stub.body if isinstance(n, ast.AnnAssign)}
    members.pop("__hash__", None)
    wanted = OURS | (set(said) - TOLD)
    found = {k: v for k, v in vars(runtime).items() if not k.startswith("__") or k in wanted}
    found = {k: v for k, v in found.items() if not (inspect.isclass(v) and v.__name__.startswith("_"))}
    where = getattr(runtime, "__name__", "")
    for name in sorted(((set(said) | set(members)) - TOLD) ^ set(found)):
        yield f"{where}.{name} is in the {'core' if name in found else 'stub'} only"
    for name in sorted(set(members) & set(found)):
        is_constant = inspect.ismodule(runtime) and type(found[name]).__name__ == members[name].partition("[")[0]
        if not is_constant and not inspect.ismemberdescriptor(found[name]):
            yield f"{where}.{name} is a member in the stub only"
    if "__init__" in said and arguments(said["__init__"].args) != described(runtime):
        yield f"{where} takes {described(runtime)} in the core, {arguments(said['__init__'].args)} in the stub"
    for name in sorted(set(said) & set(found)):
        if isinstance(said[name], ast.ClassDef):
            yield from differences(said[name], found[name])
            continue
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in said[name].decorator_list)
        if is_property != inspect.isgetsetdescriptor(found[name]):
            yield f"{where}.{name} is a property in one of them only"
        elif not is_property and (name == "__new__" or not name.startswith("__") or "dlpack" in name):
            want = described(runtime if name == "__new__" else found[name])
            if arguments(said[name].args) != want:
                yield f"{where}.{name} is {want} in the core, {arguments(said[name].args)} in the stub"


def described(function):
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    return [p.name for p in parameters], [(p.name, repr(p.default)) for p in parameters if p.default is not p.empty]


def arguments(a):
    """(names, defaults) of a function in a stub."""
    places = [x.arg for x in a.posonlyargs + a.args]
    names = [x for x in places + [k.arg for k in a.kwonlyargs] if x not in ("self", "cls")]
    defaults = list(zip(places[len(places) - len(a.defaults) :], a.defaults))
    defaults += [(k.arg, d) for k, d in zip(a.kwonlyargs, a.kw_defaults) if d]
    return names, [(k, ast.unparse(d)) for k, d in defaults]


def without_hints(source):
    for f in ast.walk(ast.parse(source)):
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs, f.args.vararg, f.args.kwarg]
            bare = [a.arg for a in every if a and not a.annotation and a.arg not in ("self", "cls")]
            if bare or not f.returns:
                yield f"{f.name}({', '.join(bare)})"


def options_of(where):
    """{option: (hint, default)} of all parameters with a default, also of a dataclass, from the source."""
    module, *names = where.split(".")
    node = ast.parse((PACKAGE / f"{module}.py").read_text())
    for name in names:
        node = next(n for n in node.body if getattr(n, "name", None) == name)
    if isinstance(node, ast.ClassDef):
        found = [(n.target.id, n.annotation, n.value) for n in node.body if isinstance(n, ast.AnnAssign)]
    else:
        places, named = node.args.posonlyargs + node.args.args, node.args
        found = list(zip(places[len(places) - len(named.defaults) :], named.defaults))
        found = [(a.arg, a.annotation, d) for a, d in found + list(zip(named.kwonlyargs, named.kw_defaults))]
    return {name: (ast.unparse(hint), eval(ast.unparse(d))) for name, hint, d in found if d is not None}


def words_of(hint, default):
    """Of a hint and a default, the values that a table has to name: words, None, True and False."""
    found, parts = {None} if default is None else set(), [ast.parse(hint, mode="eval").body]
    while parts:
        part = parts.pop()
        if isinstance(part, ast.BinOp):  # a | b
            parts += [part.left, part.right]
        elif isinstance(part, ast.Constant):
            found.add(part.value)
        elif isinstance(part, ast.Subscript) and part.value.id == "Literal":
            found |= set(ast.literal_eval(ast.Tuple(getattr(part.slice, "elts", [part.slice]), ast.Load())))
        elif isinstance(part, ast.Name) and part.id == "bool":
            found |= {True, False}
        elif isinstance(part, ast.Name):
            alias = getattr(_types, part.id, None)
            found |= set(get_args(alias)) if get_origin(alias) is Literal else set()
    return found


def tables(page):
    """{heading: {option: (values that are words, default)}} of the tables of options."""
    out, heading = {}, None
    for line in page[page.index("\n## Which options are there?\n") + 1 :].split("\n")[1:]:
        if line.startswith("## "):
            break
        if line.startswith("### "):
            heading = line[4:].strip("`")
            out[heading] = {}
        elif line.startswith("| `"):
            options, values, defaults, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            words = {ast.literal_eval(w) for w in re.findall(r'`("[^`]*"|None|True|False)`', values)}
            names, given = re.findall(r"`(\w+)`", options), re.findall(r"`([^`]*)`", defaults)
            given *= len(names) if len(given) == 1 else 1
            out[heading] |= {name: (words, eval(default)) for name, default in zip(names, given, strict=True)}
    return out


def stale(page):
    """What the tables of a page say otherwise than the functions."""
    said, loader = tables(page), options_of(TABLES["libshard.Loader"])
    yield from (f"{name}: no table, or no function" for name in sorted(said.keys() ^ TABLES.keys()))
    for heading in said.keys() & TABLES.keys():
        real = options_of(TABLES[heading])
        if heading in PASS_ON:
            real = {name: option for name, option in real.items() if option != loader.get(name)}
        yield from (f"{heading}: {name}: not in both" for name in sorted(real.keys() ^ said[heading].keys()))
        for name in real.keys() & said[heading].keys():
            hint, default = real[name]
            words, shown = said[heading][name]
            wanted = words_of(hint, default)
            if not wanted <= words or {w for w in words - wanted if not isinstance(w, str)}:
                yield f"{heading}: {name}: takes {wanted}, not {words}"
            if "str" not in hint and "Any" not in hint and words - wanted:
                yield f"{heading}: {name}: {words - wanted} is not one of its words"
            if shown != default or type(shown) is not type(default):
                yield f"{heading}: {name}: the default is {default!r}, not {shown!r}"


class Hints(unittest.TestCase):
    def test_the_tables_of_options_are_as_the_functions_are(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/PYTHON.md").read_text()
        self.assertEqual(list(stale(page)), [])
        for name in libshard.__all__:
            thing = getattr(libshard, name)
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and not name.endswith("Error"):
                defaults = [p for p in inspect.signature(thing).parameters.values() if p.default is not p.empty]
                self.assertTrue(not defaults or f"libshard.{name}" in TABLES or name in UNTABLED, name)
        # A table is found stale that has another default, word or option, or lacks one.
        for old, new in (
            ("| `prefetch` | number of batches | `2` |", "| `prefetch` | number of batches | `3` |"),
            ("| `copy` | `True`, `False` | `False` |", "| `copy` | `True`, `False` | `0` |"),
            ('`"fail"`, `"substitute"`, `"mask"`', '`"fail"`, `"mask"`'),
            ('`"fail"`, `"substitute"`, `"mask"`', '`"fail"`, `"substitute"`, `"mask"`, `"drop"`'),
            ("| `max_steps` |", "| `max_step` |"),
            ("### `libshard.mix`\n", "### `libshard.mixed`\n"),
            ("| `max_steps` | number of batches, `None` |", "| `max_steps` | number of batches |"),
        ):
            self.assertEqual(page.count(old), 1, old)
            self.assertTrue(list(stale(page.replace(old, new))), new)

    def test_the_stub_is_as_the_core_is(self):
        stub = ast.parse((PACKAGE / "_core.pyi").read_text())
        self.assertEqual(list(differences(stub, _core)), [])
        # The comparison sees a method too many, too few, and another argument.
        text = (PACKAGE / "_core.pyi").read_text()
        for bad, count in (
            (text.replace("def tell(", "def told("), 2),
            (text.replace("self, epoch: int, position", "self, epoch: int, place"), 1),
            (text.replace("prefetch: int = 2", "prefetch: int = 3"), 1),
            (text.replace("self, fields: Map", "self, field: Map"), 1),
            (text.replace("    @property\n    def position(self) -> int: ...\n", ""), 1),
            (text.replace("    def held(self) -> int: ...", "    held: int"), 1),
            (text.replace("    @property\n    def shape", "    def shape"), 1),
        ):
            self.assertNotEqual(bad, text)
            self.assertEqual(len(list(differences(ast.parse(bad), _core))), count)

    def test_every_function_has_hints(self):
        self.assertTrue((PACKAGE / "py.typed").exists())
        for path in sorted(PACKAGE.rglob("*.py*")):
            if path.suffix in (".py", ".pyi"):
                self.assertEqual(list(without_hints(path.read_text())), [], path.name)
        self.assertEqual(list(without_hints("def f(a, b: int = 0): ...\ndef g(self) -> None: ...")), ["f(a)"])

    def test_options_that_are_passed_on_are_those_of_the_loader(self):
        parameters = inspect.signature(libshard.Loader).parameters.values()
        ours = {
            p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in ("rank", "world", "epochs")
        }
        passed = {k: v.__forward_arg__ for k, v in LoaderOptions.__annotations__.items()}
        self.assertEqual(passed, ours)

    def test_every_public_name_has_a_text(self):
        for name in libshard.__all__:
            thing = getattr(libshard, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                self.assertTrue(inspect.getdoc(thing), name)
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value), f"{name}.{member}")


if __name__ == "__main__":
    unittest.main()
