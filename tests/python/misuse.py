# SPDX-License-Identifier: Apache-2.0
"""Whatever is given to a public call, the answer is a sentence of ours.

Each argument of each public call is replaced by each of many values, most of them of a wrong type.
The call may accept the value.  Otherwise it must raise an exception whose message names the argument
or shows the value, and does not come from the inside of Python or of the package: a user must learn
what to type.  A mistake in this test itself is noticed too: each call must succeed as it is written.
"""

import array
import contextlib
import datetime
import decimal
import functools
import inspect
import io
import itertools
import os
import pathlib
import random
import re
import shutil
import sys
import warnings

import data
import libshard
import numpy as np


class Thing:
    """An object that is nothing else."""

    __module__ = "user"

    def __repr__(self):
        return "<a thing>"


class Mute:
    """An object that cannot be shown."""

    def __repr__(self):
        raise RuntimeError("no repr")


class Own(Exception):
    """What a user's function raises, which must come through as it is."""


def raising(*args):
    raise Own(len(args))


def values(seed):
    """Pairs of a name and a value."""
    draw = random.Random(seed)
    fixed = [
        None, True, False, 0, 1, -1, 3, 1 << 31, 1 << 64, 1 << 80, -(1 << 63) - 1, 0.5, -1.5, 1e300, float("nan"),
        float("inf"), 2 + 1j, decimal.Decimal("1.5"), "", "x", "label", "ünï", "a\nb\x1b[2J", "\udc80", "\0", b"",
        b"x", b"\xff", bytearray(b"ab"), memoryview(b"ab"), [], ["x"], [1, "x"], [None], [[]], (), (1,), (1, 2, 3), {},
        {"x": 1}, {1: 2}, {"label": None}, set(), {"x"}, frozenset((1,)), range(3), slice(None), slice(1, None, 0),
        slice("a", "b"), iter(()), (i for i in range(2)), Thing(), Thing, len, lambda: None, lambda a, b: a,
        Ellipsis, NotImplemented, sys, datetime.date(2024, 1, 1), np.float32(1.5), np.int8(-3), np.bool_(True),
        np.datetime64("2024-01-01"), np.array(3), np.array([0.5]), np.array([True, False]), np.array(["x"]),
        np.array([[1, 2]]), np.zeros(0), np.array([None]), np.zeros(2, "i4,f4"), np.ma.masked, np.random.default_rng(1),
        array.array("d", [1.0]), io.StringIO("x"), object(), "s3://bucket/x", os, "./x/", "x" * 5000, TypeError("x"),
        [float("nan")], [True, False, True], {"x": {"y": 1}}, [b"x"], ("a", "b"), 1 << 20000, [1 << 20000], Mute(),
        [Mute()], raising, dict, (-1,), (1 << 70,), ["y" * 5000] * 50, {"y" * 5000: 1},
        list(range(5000)), np.arange(5000), np.int64(-1), np.array([1 << 63], "u8"), "\ud800", ["\0"],
        "caf\u00e9\u202e", lambda a, b, c: a, {"x"}, {"x": [1]},
    ]  # fmt: skip
    drawn = [draw.choice((-1, 1)) * draw.getrandbits(draw.randrange(1, 90)) for _ in range(4)]
    drawn += ["".join(map(chr, draw.choices(range(1, 0x2FFF), k=draw.randrange(1, 9)))) for _ in range(4)]
    drawn += [[draw.choice(fixed[:40]) for _ in range(draw.randrange(1, 4))] for _ in range(8)]
    return fixed + drawn


# ---- the calls: a name, the function, its arguments as they are right ----

SAMPLES = [{"x": np.arange(4, dtype="f4"), "label": i % 2} for i in range(6)]


def fresh(name="out"):
    shutil.rmtree(name, ignore_errors=True)
    return name


def written(schema="x:f4[4],label:i64"):
    return libshard.Writer(fresh(), schema.replace("f4", "f32"), classes=["a", "b"])


def make_calls(ds, images, mixed):
    image = np.zeros((8, 8, 3), "u1")
    loader = lambda **more: libshard.Loader(images, 4, threads=1, **more)  # noqa: E731
    loaded = loader()
    state = loaded.state_dict()
    selection = ds.select([1, 2, 3])
    selection.save("sel")
    batch = next(iter(loader(copy=True)))
    options = inspect.signature(libshard.Loader.__init__).parameters
    right = {
        "dataset": images, "batch_size": 4, "fields": ["image"], "items": "rows", "strings": "rows", "transform": None,
        "shuffle": True, "seed": 1, "rank": 0, "world": 1, "tail": None, "drop_last": None, "prefetch": 1,
        "max_held": 2, "copy": False, "threads": 1, "path": "auto", "on_corrupt": "fail", "corrupt_most": 3,
        "device": "cpu", "memory": None, "window_runs": 0, "lanes": 0, "run_records": 0, "phase_unit_records": 0,
        "stage_bytes": 0, "stream": None, "pool_bytes": 0, "resume_appended": False,
    }  # fmt: skip
    right |= {name: p.default for name, p in options.items() if name not in right and name not in ("self", "options")}
    right.pop("kwargs", None)

    def loop(**given):
        with libshard.Loader(**given) as loader:
            for _ in itertools.islice(loader, 2):
                pass

    def transformed(**given):
        with libshard.Loader(images, 4, transform=libshard.Transform(**given), threads=1) as loader:
            next(iter(loader))

    def pack(**given):
        fresh()
        libshard.pack(**given)

    def writer(**given):
        fresh()
        with libshard.Writer(**given) as w:
            for sample in SAMPLES:
                w.write(sample, *(["k"] if given["keys"] else []))

    def write(**given):
        with written() as w:
            w.write(SAMPLES[0])
            w.write(**given)

    def write_batch(**given):
        with written() as w:
            w.write_batch(**given)

    def columns(**given):
        write_batch(columns=given)

    def value_of(**given):
        with written() as w:
            w.write(given)

    def field(**given):
        f = libshard.Field(**given)
        libshard.pack([{given["name"] if isinstance(given["name"], str) else "x": 1}] * 3, [f], fresh())

    def save(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink("saved")
        selection.save(path)

    def set_epoch(epoch):
        with loader() as one:
            one.set_epoch(epoch)
            next(iter(one))

    def load(state):
        with loader() as one:
            one.load_state_dict(state)
            next(iter(one))

    return [
        ("open", libshard.open, {"path": "ds", "check": "device", "guard": True, "id": ds.id}),
        ("Dataset", libshard.Dataset, {"path": "ds", "check": "device", "guard": True, "id": ds.id}),
        ("ds[i]", lambda number: ds[number], {"number": 1}),
        ("ds[[i]]", lambda number: ds[[number]], {"number": 1}),
        ("ds[a:b:c]", lambda a, b, c: ds[a:b:c], {"a": 1, "b": 3, "c": 1}),
        ("ds.key", lambda number: keyed.key(number), {"number": 1}),
        ("ds.schema[...]", lambda name: ds.schema[name], {"name": "label"}),
        ("in ds.schema", lambda name: name in ds.schema, {"name": "label"}),
        ("ds.verify", ds.verify, {"sample_units": 1, "threads": 1, "sha256": False, "progress": None, "strict": True}),
        ("ds.show", lambda records: repr(ds.show(records)), {"records": 2}),
        ("ds.column", ds.column, {"field": "label"}),
        ("ds.load_selection", ds.load_selection, {"path": "sel"}),
        ("ds.select", ds.select, {"records": [1, 2]}),
        ("ds.where", ds.where, {"label": 1}),
        ("ds.where(x)", ds.where, {"x": lambda x: x[:, 0] == 0}),
        ("ds.split", lambda a, b, seed: ds.split(a, b, seed=seed), {"a": 0.5, "b": 0.25, "seed": 1}),
        ("ds.split(list)", lambda parts, by: ds.split(parts, by=by), {"parts": [0.5, 0.5], "by": "label"}),
        ("ds.by_key", keyed.by_key, {"key": "k1"}),
        ("concat", lambda datasets, number: libshard.concat(datasets)[number], {"datasets": [ds, ds], "number": 7}),
        ("zip", lambda beside, x: libshard.zip(ds, beside, y=x)[1], {"beside": keyed_six, "x": np.zeros(6)}),
        ("ds + x", lambda other: ds + other, {"other": ds}),
        ("ds.folds", ds.folds, {"count": 2, "seed": 1}),
        ("selection[i]", lambda place: selection[place], {"place": 1}),
        ("selection.numbers", selection.numbers, {"places": [0, 1]}),
        ("selection.save", save, {"path": "saved"}),
        ("mix", libshard.mix, {"sources": [ds, ds], "weights": [1, 2], "epoch_records": 9, "stop": "longest"}),
        ("balanced", libshard.balanced, {"dataset": ds, "field": "label", "stop": "longest"}),
        ("Loader", loop, right),
        ("Loader of a mixture", loop, {"dataset": mixed, "batch_size": 4}),
        ("Transform", transformed, {
            "crop": "center", "size": 4, "flip": 0.5, "dtype": "f32", "layout": "hwc", "mean": 0.5, "std": 1.0,
            "filter": "bilinear", "pixels": "recipe", "views": 1, "area": (0.1, 1.0), "ratio": (0.5, 2.0),
            "field": "image",
        }),
        ("loader.set_epoch", set_epoch, {"epoch": 1}),
        ("loader.load_state_dict", load, {"state": state}),
        ("loader.load_state_dict(token)", lambda token: load({**state, "token": token}), {"token": state["token"]}),
        ("loader.indices", loaded.indices, {"epoch": 0, "first": 0, "count": 2}),
        ("Batch", libshard.Batch, {"fields": {"x": [1]}, "items": ()}),
        ("batch[...]", lambda name: batch[name], {"name": "image"}),
        ("batch.images", lambda field: whole_batch.images(field), {"field": "whole"}),
        ("array[...]", lambda index: batch["image"][index], {"index": 1}),
        ("pack", pack, {
            "source": SAMPLES, "schema": None, "out": "out", "names": None, "batched": False, "key": None,
            "classes": ["a", "b"], "order": "source", "seed": 0, "progress": None, "compress": None,
            "shard_records": 3, "align": 0, "replace": False, "provenance": "",
        }),
        ("pack by shards", pack, {
            "source": SAMPLES, "schema": None, "out": "out", "workers": 0, "on_error": "fail", "resume": True,
            "start_method": "spawn",
        }),
        ("pack of columns", pack, {"source": {"x": np.zeros((6, 4)), "label": [0] * 6}, "schema": None, "out": "out"}),
        ("pack of tuples", pack, {"source": [(1, 2)] * 3, "schema": "a:i32,b:i64", "out": "out", "names": ("a", "b")}),
        ("pack of batches", pack, {"source": [{"x": np.zeros(3)}], "schema": None, "out": "out", "batched": True}),
        ("Writer", writer, {
            "out": "out", "schema": "x:f32[4],label:i64", "classes": ["a", "b"], "compress": None, "shard_records": 3,
            "shard_bytes": None, "records": 6, "keys": False, "align": 0, "replace": False, "provenance": "",
        }),
        ("Writer.write", write, {"record": SAMPLES[0], "key": None}),
        ("Writer.write(x=, label=)", value_of, {"x": SAMPLES[0]["x"], "label": 1}),
        ("Writer.write_batch", write_batch, {"columns": {"x": np.zeros((2, 4), "f4"), "label": [0, 1]}, "keys": None}),
        ("Writer.write_batch(x=)", columns, {"x": np.zeros((1, 4), "f4"), "label": [0]}),
        ("Field", field, {
            "name": "x", "dtype": "int32", "shape": (), "kind": "tensor", "layout": "none", "semantic": "none",
            "group": -1, "bytes": 0,
        }),
    ]  # fmt: skip


# ---- what a message must not be ----

# Sentences of Python, of NumPy, and of the inside of the package.
INSIDE = re.compile(
    r"' object (is|has|cannot|does)|object of type '|has no attribute|not supported between|unsupported operand"
    r"|positional argument|unexpected keyword|__\w+__|LoaderBase|_core\b|expected str, bytes|an integer is required"
    r"|must be (str|real|an integer|a real|int|bytes|sequence|tuple|a string)\b[^;:]*, not"
    r"|not enough values|too many values"
    r"|invalid literal|could not (be )?convert|can't |unhashable|codec can't|surrogates not|embedded null|truth value"
    r"|argument \d|out of bounds|cannot be interpreted|not iterable|not callable|Python int too large|list index out"
    r"|string index|data type .* not understood|setting an array|slice (step|indices)"
)
# What Python and NumPy say of indices of a dict and of an array is theirs.
THEIRS = {
    "batch[...]": "unhashable type",
    "array[...]": "out of bounds|setting an array element|only integers, slices|codec can.t",
}


def fault_of(call, error, value=None):
    """What is wrong with an exception, or None."""
    try:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    except Exception:
        return "a message that cannot be shown"
    of_user = isinstance(error, Own) and value is raising or value is dict and call.startswith("ds.where")
    if of_user or re.search(THEIRS.get(call, "$^"), text):
        return None
    if not isinstance(error, (libshard.Error, TypeError, IndexError, KeyError, ImportError)):
        return f"a bare {type(error).__name__}"
    shown = re.escape(value[:40]) if isinstance(value, str) else "$^"
    found = INSIDE.search(re.sub(shown, "", text))
    if found:
        return f"words from the inside: {found.group()!r}"
    if "\n" in text or re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text):
        return "raw control characters"
    if len(text) > 600:
        return f"{len(text)} characters"
    if len(text) < 15:
        return "too short to say what to do"
    return None


raised = {}  # messages of ours, without what values they have: such a message


def raised_by(call, **given):
    """The exception of a call, or None."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            call(**given)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:
        # Of the system's errors the words are the system's; and one that is cut has lost its middle.
        if isinstance(e, libshard.Error) and not str(e).endswith(os.strerror(e.os_code)) and len(str(e)) < 500:
            raised.setdefault(re.sub(r"\d+|'[^']*'", "", str(e))[:80], str(e))
        return e
    return None


def hold_index():
    """Is each message in the index that the site has?  Returns how many are not."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs/site"))
    import messages

    index = messages.messages(pathlib.Path(__file__).parents[2])
    find = messages.finder(index)
    assert find("rank is 3; must be below world, 2") and not find("rank is 3, which is not below the world of 2")
    lost = [text for text in raised.values() if find(text) is None]
    for text in lost:
        print(f"not in the index of messages: {text[:250]}")
    print(f"{len(raised)} messages, {len(lost)} of them not in the index of {len(index)}")
    return len(lost)


def hold(calls, seed, only=()):
    """Give each argument of each call each value, and print what is wrong with the answers; returns how much is."""
    faults, count, refused = {}, 0, 0
    for name, call, right in calls:
        if only and name not in only:
            continue
        error = raised_by(call, **right)
        assert error is None, f"{name} as it is right: {error}"
        for argument in right:
            for value in values(seed):
                count += 1
                error = raised_by(call, **{**right, argument: value})
                refused += error is not None
                wrong = error is not None and fault_of(name, error, value)
                if wrong:
                    said = f"{brief(value)}: {brief(error, 250)}"
                    faults.setdefault((name, argument, wrong), said)
    for (name, argument, wrong), example in faults.items():
        print(f"{name}, {argument}: {wrong}\n    {example}")
    print(f"{count:,} calls, {refused:,} refused, {len(faults)} kinds of messages that do not help, seed {seed}")
    return len(faults)


def brief(value, most=60):
    try:
        return ascii(value)[:most]
    except Exception:
        return type(value).__name__


def hold_hints(stories):
    """Of each (call, kind, what its message has): returns how many do not hold."""
    faults = 0
    for call, kind, wanted in stories:
        error = raised_by(call)
        text = str(error.args[0]) if error is not None and error.args else str(error)
        good = isinstance(error, (AttributeError, Own)) or fault_of("", error) is None
        if type(error) is not kind or not re.search(wanted, text) or not good:
            faults += 1
            print(f"{wanted!r}, {kind.__name__}: {type(error).__name__}: {text[:300]}")
    return faults


# ---- what people type who know other libraries ----


def make_stories(ds, images, mixed):
    loader = libshard.Loader(images, 4, threads=1, copy=True)
    batch, selection, error = next(iter(loader)), ds.select([1, 2]), libshard.ArgumentError
    zipped = libshard.zip(ds, y=np.arange(len(ds)))
    samples, new = SAMPLES[:2], ("new", "x:f32[4],label:i64")
    pack = functools.partial(libshard.pack, samples, None, "new")
    return [
        (lambda: ds.split([0.8, 0.1]), error, "a list must make 1"),
        (lambda: ds.split(90, 10), error, "above 0, and 1 at most"),
        (lambda: ds.split("0.8"), TypeError, "fractions='0.8'; must be a number"),
        (lambda: ds.where(lambda r: r["label"] == 3), TypeError, "name the field"),
        (lambda: ds.where(label=[True]), TypeError, r"the field is int64.*where\(label=\[0, 1\]\).*ds.select\(mask\)"),
        (lambda: ds.where(label=np.array([True, False])), TypeError, "the field is int64"),
        (lambda: ds.where(label=lambda: 1), TypeError, r"f\(values\), and this takes \(\)"),
        (lambda: ds.where(label=lambda values: [[1], [1, 2]]), TypeError, "array of 6 bools"),
        (lambda: ds["label"], TypeError, r"ds\[0\]\['image'\].*ds.column"),
        (lambda: ds.key(True), TypeError, "must be a whole number, not a value of type bool"),
        (lambda: (ds + ds).key(True), TypeError, "record True of a concatenation of 2 datasets; must be a whole number"),
        (lambda: libshard.mix([ds + selection]), TypeError, r"pack\(both, None, out\).*libshard.mix\(\) its parts"),
        (lambda: ds.map(len), AttributeError, "transform=f"),
        (lambda: ds.filter(len), AttributeError, "where"),
        (lambda: ds.column_names, AttributeError, "ds.schema.names"),
        (lambda: ds.shcema, AttributeError, "libshard.Dataset has no attribute 'shcema'$"),
        (lambda: selection.schema, AttributeError, "selection.dataset.schema"),
        (lambda: selection.map(len), AttributeError, "transform=f"),
        (lambda: selection.by_key("k"), AttributeError, "selection.dataset.by_key"),
        (lambda: (ds + ds).stats, AttributeError, "both.dataset.stats"),
        (lambda: zipped.split(0.5), AttributeError, r"libshard.zip\(train"),
        (lambda: zipped.where(label=1), AttributeError, r"libshard.zip\(ds.where\(\.\.\.\)"),
        (lambda: zipped + zipped, TypeError, r"libshard.zip\(a \+ b"),
        (lambda: "cat/1.jpg" in ds, TypeError, "ds.by_key.*ds.schema.names"),
        (lambda: "label" in selection, TypeError, "name in ds.schema.names"),
        (lambda: ds[0] in ds + ds, TypeError, "its items are records"),
        (lambda: 3 in zipped, TypeError, "its items are records"),
        (lambda: ds.keys(), AttributeError, "ds.key"),
        (lambda: mixed.schema, AttributeError, "mixture.dataset.schema"),
        (lambda: loader.num_workers, AttributeError, "threads of its own"),
        (lambda: next(loader), TypeError, "it = iter"),
        (lambda: batch["position_ids"], KeyError, "no item 'position_ids' in this batch, which has image, label"),
        (lambda: batch.to("cuda"), TypeError, "'image' is not a tensor of PyTorch.*libshard.torch.Loader"),
        (lambda: batch.cuda(), AttributeError, "batch.to\\(device\\) moves all of them"),
        (lambda: batch.image, AttributeError, r"batch\['image'\] is that item"),
        (lambda: batch["image"].float(), AttributeError, "libshard.torch.Loader"),
        (lambda: batch["image"].cuda(), AttributeError, "libshard.torch.Loader"),
        (lambda: batch["image"].shcape, AttributeError, "no attribute 'shcape'"),
        (lambda: getattr(batch, ""), AttributeError, "no attribute ''"),
        (lambda: libshard.Loader(samples, 4), TypeError, r"libshard.pack\(\) makes a dataset"),
        (lambda: libshard.Loader([ds, ds], 4), TypeError, r"libshard.mix\(\[a, b\]\)"),
        (lambda: libshard.Loader(loader, 4), TypeError, r"the Loader's .dataset"),
        (lambda: libshard.balanced(mixed), TypeError, "a mixture cannot be a source"),
        (lambda: libshard.mix({"a": ds}), TypeError, "a list of datasets"),
        (lambda: pack(skip_errors=True), TypeError, "libshard.pack has no option skip_errors="),
        (lambda: pack(shard_record=3), TypeError, "did you mean shard_records="),
        (lambda: libshard.pack(samples, None), TypeError, "libshard.pack: give it out; it takes source, schema, out"),
        (lambda: pack(classes={"b", "a"}), TypeError, "must be names, in their order, as"),
        (lambda: pack(classes="ab"), TypeError, "must be names, in their order, as"),
        (lambda: pack(key=lambda number: "k"), TypeError, r"f\(number, sample\)"),
        (lambda: libshard.open("ds", chek=1), TypeError, "libshard.open has no option chek=; did you mean check="),
        (lambda: libshard.open(), TypeError, "libshard.open: give it path"),
        (lambda: libshard.Dataset("ds", mode="r"), TypeError, "libshard.Dataset has no option mode=; there are path"),
        (lambda: libshard.open("ds", guard="no"), TypeError, "guard='no'; must be True or False"),
        (lambda: libshard.Writer(*new, record=3), TypeError, "libshard.Writer has no option record=; did you"),
        (lambda: libshard.Transform(crops=3), TypeError, "libshard.Transform has no option crops=; did you mean crop="),
        (lambda: libshard.Field("x", "f4", dim=3), TypeError, "libshard.Field has no option dim="),
        (lambda: libshard.concat(ds, ds), TypeError, "libshard.concat: give it one argument, not 2; it takes datasets"),
        (lambda: libshard.mix([ds], [1], 3), TypeError, "libshard.mix: these are too many arguments; it takes sources"),
        (lambda: ds.verify(thread=3), TypeError, "Dataset.verify has no option thread=; did you mean threads="),
        (lambda: ds.verify(progress=lambda done: 1), TypeError, r"total_bytes\), and this takes \(done\)"),
        (lambda: ds.split(0.8, stratify="label"), TypeError, "split has no option stratify=: .*ds.where"),
        (lambda: ds.split(0.8, shuffle=False), TypeError, r"split has no option shuffle=: ds.select\(range"),
        (lambda: ds.split(0.8, sed=1), TypeError, "split has no option sed=; did you mean seed="),
        (lambda: ds.folds(3, sed=1), TypeError, "folds has no option sed=; did you mean seed="),
        (lambda: ds.where(label=raising), Own, "1"),
        (lambda: ds.verify(progress=raising), Own, "2"),
    ]  # fmt: skip


def check_itself():
    """Does this test notice what it is for?"""
    bad = (
        TypeError("'int' object is not iterable"), ValueError("a sentence that is long enough"), TypeError("short"),
        libshard.ArgumentError("x" * 601), TypeError("two lines of text\nare one too many"),
        AttributeError("no such name"), KeyError("x"), OSError("a sentence that is long enough"),
        TypeError("LoaderBase.__init__() got something else"),
    )  # fmt: skip
    assert all(fault_of("", error) for error in bad), [error for error in bad if not fault_of("", error)]
    assert fault_of("", TypeError("x='\x1b'; must be a whole number"), "\x1b"), "controls are found in values, too"
    assert not fault_of("", TypeError("threads='object of type '; must be a whole number"), "object of type '")
    assert fault_of("", Own(1)) and not fault_of("", Own(1), raising)


def main():
    global keyed, keyed_six, whole_batch
    check_itself()
    data.pack_images("images", 12, side=8)
    ds = libshard.pack(SAMPLES, None, "ds", classes=["a", "b"])
    keyed = libshard.pack({"x": [1, 2]}, None, "keyed", key=lambda i, _: f"k{i}")
    keyed_six = libshard.pack({"z": [1] * 6}, None, "keyed_six", key=lambda i, _: f"k{i}")
    images = libshard.open("images")
    with libshard.Loader(images, 4, copy=True) as loader:
        whole_batch = libshard.Batch(dict(next(iter(loader))))
    whole_batch |= {"whole": np.zeros((1, 30, 3), "u1"), "whole_size": np.array([[5, 6]])}
    mixed = libshard.mix([ds, ds])
    faults = hold(make_calls(ds, images, mixed), int(os.environ.get("DRAW", "1")), sys.argv[1:])
    faults += hold_hints(make_stories(ds, images, mixed))
    return 1 if faults + hold_index() else 0


if __name__ == "__main__":
    sys.exit(main())
