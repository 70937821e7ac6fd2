# SPDX-License-Identifier: Apache-2.0
"""Loaders of a concatenation: their rows are its records by number, in the order of one dataset."""

import hashlib
import os
import pickle
import random
import unittest

import libshard
import numpy as np

CLASSES = ["a", "b", "c"]


def sample(rng, longest):
    """Values of which those that vary in length are at most so long."""
    return {
        "image": rng.integers(0, 256, (9, 7, 3), "u1"),
        "label": int(rng.integers(3)),
        "score": float(rng.random()),
        "vector": rng.random(5, "f4"),
        "word": "é" * int(rng.integers(longest + 1)),
        "points": rng.random((int(rng.integers(longest + 1)), 2), "f4"),
        "raw": rng.bytes(int(rng.integers(longest + 1))),
    }


def pack(name, samples, longest, first=0, **options):
    schema = {
        "image": "image[9,7,3]", "label": "int64", "score": "float64", "vector": "float32[5]",
        "word": f"text[<={2 * longest}]", "points": f"float32[<={longest},2]", "raw": f"bytes[<={longest}]",
    }  # fmt: skip
    return libshard.pack(samples, schema, name, classes=CLASSES, key=lambda i, _: f"k{first + i}", **options)


def plain(record):
    """A record that == compares."""
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in record.items()}


def rows(batch):
    """The records of a batch, as a dataset has them."""
    listed = {name: np.asarray(batch[name]) for name in batch if name not in ("word", "raw")}
    for i in range(len(batch.index)):
        row = {name: listed[name][i].tolist() for name in ("image", "label", "score", "vector")}
        row["points"] = listed["points"][i, : int(listed["points_length"][i])].tolist()
        yield row | {"word": batch["word"][i], "raw": batch["raw"][i]}


def epoch(loader):
    return [(number, row) for batch in loader for number, row in zip(batch.index.tolist(), rows(batch))]


class Concatenations(unittest.TestCase):
    """Parts of several sizes, with other greatest lengths, some compressed.  tests/load has empty ones."""

    @classmethod
    def setUpClass(cls):
        rng = np.random.default_rng(5)
        cls.samples, cls.parts, first = [], [], 0
        for number, (count, longest) in enumerate(((31, 4), (2, 3), (1, 9), (53, 2), (17, 6))):
            drawn = [sample(rng, longest) for _ in range(count)]
            cls.parts.append(pack(f"part{number}", drawn, longest, first, compress=(None, "lz4")[number % 2], shard_records=20))
            cls.samples += drawn
            first += count
        cls.one = pack("one", cls.samples, 9, shard_records=30)
        cls.both = libshard.concat(cls.parts)
        cls.want = [plain(record) for record in cls.one]

    def check(self, both, want, **options):
        """An epoch or two, whose rows must be these records in the order that the loader says."""
        with libshard.Loader(both, strings="lists", **options) as loader:
            for number in range(2):
                got = epoch(loader)
                count = len(got)
                self.assertEqual([n for n, _ in got], loader.indices(number, 0, count).tolist())
                for at, row in got:
                    self.assertEqual(row, want[at])
                yield [n for n, _ in got]

    def test_rows_are_records_by_number(self):
        self.assertEqual([plain(record) for record in self.both], self.want)
        for count in range(1, 6):
            parts = self.parts[5 - count :]
            both = libshard.concat(parts)
            want = [plain(record) for record in both]
            for shuffle in ("global", "windows", False):
                for options in ({}, {"path": "pread"}, {"rank": 1, "world": 3, "tail": "pad"}, {"drop_last": True}):
                    for got in self.check(both, want, batch_size=7, shuffle=shuffle, seed=count, **options):
                        if not options or "path" in options:
                            self.assertEqual(sorted(got), list(range(len(both))))

    def test_the_order_is_that_of_one_dataset(self):
        """Where runs are as long; that depends on the bytes of a record, so it is said here."""
        for shuffle, runs in (("global", {}), ("windows", {"run_records": 4, "window_runs": 3, "lanes": 2,
                                                           "phase_unit_records": 2}), (False, {})):  # fmt: skip
            for share in ({}, {"rank": 2, "world": 4}):
                options = {"batch_size": 6, "shuffle": shuffle, "seed": 8, "strings": "lists", "drop_last": True, **runs, **share}
                with libshard.Loader(self.both, **options) as a, libshard.Loader(self.one, **options) as b:
                    for _ in range(3):
                        self.assertEqual(epoch(a), epoch(b))
        # The control: with two parts exchanged other rows come in the same places.
        wrong = libshard.concat([*self.parts[3:], *self.parts[:3]])
        options = {"batch_size": 6, "shuffle": "global", "strings": "lists"}
        with libshard.Loader(wrong, **options) as a, libshard.Loader(self.one, **options) as b:
            a, b = epoch(a), epoch(b)
            self.assertEqual([n for n, _ in a], [n for n, _ in b])
            self.assertNotEqual(a, b)

    def test_states_are_of_the_same_parts_in_the_same_order(self):
        with libshard.Loader(self.both, 9, seed=2, strings="lists") as loader:
            steps = iter(loader)
            next(steps)
            state = loader.state_dict()
            rest = [n for batch in steps for n in batch.index.tolist()]
        again = libshard.concat([f"part{i}" for i in range(5)])  # opened again
        with libshard.Loader(again, 5, seed=2) as loader:
            loader.load_state_dict(state)
            self.assertEqual([n for batch in loader for n in batch.index.tolist()], rest)
        a, b, c, d, e = self.parts
        others = ((a, b, c, e, d), (a, c, d, e), (a, b))
        for other in (self.one, *map(libshard.concat, others), self.both.where(label=0)):
            for more in ({}, {"resume_appended": True}):
                with libshard.Loader(other, 9, seed=2, **more) as loader, self.assertRaises(libshard.MismatchError):
                    loader.load_state_dict(state)
        with libshard.Loader(self.one, 9, seed=2) as loader:
            state = loader.state_dict()
        with libshard.Loader(self.both, 9, seed=2) as loader:
            with self.assertRaisesRegex(libshard.MismatchError, "belongs to dataset"):
                loader.load_state_dict(state)

    def test_selections(self):
        labels = np.array([s["label"] for s in self.samples])
        for chosen, numbers in (
            (self.both.where(label=["a", "c"]), np.flatnonzero(labels != 1)),
            (self.both.where(score=lambda score: score < 0.5), np.flatnonzero([s["score"] < 0.5 for s in self.samples])),
            (self.both.select(labels == 2), np.flatnonzero(labels == 2)),
            (self.both.split(0.3, seed=1)[0], np.asarray(self.one.split(0.3, seed=1)[0].records)),
            (self.both.folds(4)[2][1], np.asarray(self.one.folds(4)[2][1].records)),
        ):
            self.assertEqual(chosen.records.tolist(), numbers.tolist())
            self.assertEqual([plain(record) for record in chosen], [self.want[n] for n in numbers])
            for got in self.check(chosen, self.want, batch_size=5, seed=3):
                self.assertEqual(sorted(got), numbers.tolist())
            self.assertEqual(pickle.loads(pickle.dumps(chosen)).digest, chosen.digest)

    def test_parts_that_are_selections(self):
        """Numbers are those of the whole parts, as batches of a selection have it."""
        a, b, _, d, e = self.parts
        both = d.where(label=0) + a + e.select([3, 5, 16]) + b + d
        want = [*d, *a, *e, *b, *d]
        numbers = [*d.where(label=0).records.tolist(), *range(53, 84), *(84 + n for n in (3, 5, 16)), *range(101, 156)]
        self.assertEqual(len(both), len(numbers))
        self.assertEqual([plain(r) for r in both], [plain(want[n]) for n in numbers])
        self.assertEqual(both.dataset.column("score").tolist(), [r["score"] for r in want])
        self.assertEqual(both.column("score").tolist(), [want[n]["score"] for n in numbers])
        for got in self.check(both, [plain(r) for r in want], batch_size=8, seed=1):
            self.assertEqual(sorted(got), numbers)
        with self.assertRaisesRegex(libshard.ArgumentError, "could be that of both\\[i\\] or of both.dataset\\[i\\]"):
            both.select([53])
        chosen = both.where(label=0)
        self.assertEqual(chosen.records.tolist(), [n for n in numbers if want[n]["label"] == 0])
        # A selection of it is a part like any other.
        more = chosen + a
        self.assertEqual([plain(r) for r in more], [plain(r) for r in [*chosen, *a]])
        for got in self.check(more, [plain(r) for r in [*want, *a]], batch_size=8):
            self.assertEqual(sorted(got), [*chosen.records.tolist(), *range(156, 187)])

    def test_the_dataset_of_all(self):
        ds = self.both.dataset
        self.assertEqual((len(ds), ds.classes, ds.shard_count), (104, CLASSES, 8))
        self.assertEqual([ds.key(i) for i in (0, 31, 33, -1)], ["k0", "k31", "k33", "k103"])
        self.assertEqual((ds.index_of("k77"), plain(ds.by_key("k31"))), (77, self.want[31]))
        for at in (0, 30, 31, 33, 34, 86, 87, -1):
            for number in (at, np.int64(at)):
                self.assertEqual(plain(ds[number]), self.want[at])
        # What all parts store alike can lie side by side; the rest is read record by record.
        same = libshard.concat([pack(f"same{i}", self.samples[20 * i : 20 * i + 20], 9) for i in range(2)]).dataset
        for index in (slice(3, 40, 5), slice(None, None, -1), [0, 39, 20], np.arange(40) % 3 == 0, slice(7, 7)):
            got, want = same[index], {name: np.asarray(array)[:40][index] for name, array in self.one[:].items()}
            for name in want:
                part = np.asarray(got[name])
                self.assertTrue((part == want[name]).all() and part.shape == want[name].shape, (name, index))
        # What they store in different ways comes as it would of one dataset with room for the longest, and in the
        # order that was asked for, though records of one part are read together.
        draw = np.random.default_rng(3)
        for index in ([5, 103, 31, 40], slice(34, 39), slice(0, 2), slice(None, None, -7), [], np.arange(104) % 5 == 1,
                      np.array([-1, 0, 0, 103]), draw.integers(0, 104, 3000)):  # fmt: skip
            got, want = ds[index], self.one[index]
            self.assertEqual(list(got), list(want))
            for name in draw.permutation(list(want)).tolist():
                a, b = np.asarray(got[name]), np.asarray(want[name])
                self.assertTrue(a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), (name, index))
        for call, words in ((lambda: ds.verify(), "verify each of its parts"), (lambda: ds["x"], "indexed by a number")):
            with self.assertRaisesRegex((libshard.ArgumentError, TypeError), words):
                call()
        self.assertEqual(ds.manifest(), b"")
        self.assertEqual(ds.stats, self.one.stats)
        self.assertTrue(ds.stats.channels)
        for name in ("id", "by_key"):
            with self.assertRaisesRegex(AttributeError, f"both.dataset.{name}"):
                getattr(self.both, name)
        longest = [max(part.schema[name].shape for part in self.parts) for name in ("word", "points", "raw")]
        for schema in (self.both.schema, ds.schema):  # one truth
            self.assertEqual([schema[name].shape for name in ("word", "points", "raw")], longest)
        again = pickle.loads(pickle.dumps(self.both))
        self.assertEqual((again.dataset.id, len(again)), (ds.id, 104))
        text = "".join(["libshard concatenation 1\n", *(f"dataset {part.id}\n" for part in self.parts)])  # ORDER.md 13
        self.assertEqual(ds.id, hashlib.sha256(text.encode()).hexdigest())
        self.assertEqual(len({libshard.concat(p).dataset.id for p in ([*self.parts], self.parts[::-1], self.parts[:4])}), 3)
        ds.close()
        with self.assertRaises(libshard.ClosedError):
            ds[0]
        del self.both.dataset  # for other tests

    def test_columns_beside_it(self):
        both = libshard.zip(self.both, number=np.arange(104))
        for batch in libshard.Loader(both, 8, seed=2):
            self.assertEqual(batch["number"].tolist(), batch.index.tolist())

    def test_beside_another_dataset(self):
        """Records of parts that store them in different ways come as one dataset of all has them."""
        numbers = libshard.pack({"number": np.arange(104)}, None, "numbers", replace=True)
        for beside in (self.both, self.both.dataset):
            both = libshard.zip(numbers, beside)
            for strings in ("rows", "lists"):
                for batch in libshard.Loader(both, 9, seed=3, strings=strings):
                    records = batch.index.tolist()
                    want = self.one[records]
                    there = sum(name in batch for name in self.one.schema.names)
                    self.assertEqual(there, len(self.one.schema.names) - 2 * (strings == "lists"))  # lists have no lengths
                    for name in self.one.schema.names:
                        if isinstance(batch.get(name), list):
                            self.assertEqual(batch[name], [self.one[i][name] for i in records])
                        elif name in batch:
                            got, right = np.asarray(batch[name]), np.asarray(want[name])
                            right = right[:, 0] if self.one.schema[name].semantic == "length" else right
                            self.assertTrue(got.shape == right.shape and (got == right).all(), name)
            self.assertEqual([plain(both[i])["label"] for i in (0, 31, 103)], [self.want[i]["label"] for i in (0, 31, 103)])
        words = [["a" * (3 * (i > 51))] * (i % 3) for i in range(104)]
        halves = [libshard.pack(({"words": w} for w in part), {"words": f"text[<=2,{size}]"}, f"words{size}", replace=True)
                  for part, size in ((words[:52], 2), (words[52:], 5))]  # fmt: skip
        for batch in libshard.Loader(libshard.zip(numbers, libshard.concat(halves)), 9, seed=3):
            self.assertEqual(batch["words"].shape[1:], (2, 5))
            for row, number in zip(np.asarray(batch["words"]), batch.index.tolist()):
                want = [text.encode() for text in words[number]] + [b""] * (2 - number % 3)
                self.assertEqual([bytes(text).rstrip(b"\0") for text in row], want)
        with self.assertRaisesRegex(TypeError, "a selection: beside a dataset"):
            libshard.zip(numbers, libshard.concat([self.one.select(range(52))] * 2))

    def test_a_damaged_record(self):
        for i in range(2):
            pack(f"good{i}", self.samples[20 * i : 20 * i + 20], 9)
        (shard,) = (n for n in os.listdir("good1") if n.endswith(".shard"))
        with open(f"good1/{shard}", "r+b") as f:  # pixels of a record, wherever they lie
            text = f.read()
            at = text.index(self.samples[27]["image"].tobytes())
            f.seek(at)
            f.write(bytes([text[at] ^ 255]))
        both = libshard.concat(["good0", "good1"])
        with libshard.Loader(both, 8, strings="lists", on_corrupt="mask") as loader:
            flagged = [n for b in loader for n, f in zip(b.index.tolist(), b.flags.tolist()) if f & libshard.MASKED]
        self.assertIn(27, flagged)
        self.assertTrue(all(n >= 20 for n in flagged))
        with libshard.Loader(both, 8) as loader, self.assertRaisesRegex(libshard.CorruptError, "good1"):
            list(loader)

    def test_transforms(self):
        a, b = ([{"image": np.full((8, 8, 3), 9 * n + i, "u1"), "label": 0} for i in range(9)] for n in range(2))
        both = libshard.pack(a, {"image": "image[8,8,3]", "label": "int64"}, "ta", classes=["x"]) + libshard.pack(
            b, {"image": "image[8,8,3]", "label": "int64"}, "tb", classes=["x"])  # fmt: skip
        transform = libshard.Transform(size=4, crop="center", dtype="uint8")
        for batch in libshard.Loader(both, 4, transform=[transform, lambda batch: batch], seed=1):
            self.assertEqual(np.asarray(batch["image"])[:, 0, 0, 0].tolist(), batch.index.tolist())

    def test_packed_again_it_keeps_its_classes(self):
        """So do a selection and a zip.  An array that is the label beside a dataset has no names."""
        one, two = self.parts[3], self.parts[3].select(range(9))
        numbers = libshard.pack({"number": np.arange(53)}, None, "beside")
        labels = libshard.pack({"label": np.arange(53) % 2}, None, "labels", classes=["x", "y"])
        for n, (source, want) in enumerate((
            (two, CLASSES), (self.both, CLASSES), (self.both.where(label=1), CLASSES),
            (libshard.zip(one, number=np.arange(53)), CLASSES), (libshard.zip(two, numbers), CLASSES),
            (libshard.zip(numbers, labels), ["x", "y"]), (libshard.zip(numbers, label=np.arange(53)), []),
        )):  # fmt: skip
            for workers in (None, 0):
                again = libshard.pack(source, {"label": None}, f"named{n}{workers}", workers=workers)
                self.assertEqual(again.classes, want, n)
                self.assertEqual([r["label"] for r in again], [r["label"] for r in source])

    def test_any_parts(self):
        draw = random.Random(int(os.environ.get("SEED", "7")))
        for _ in range(30):
            parts = [draw.choice(self.parts) for _ in range(draw.randint(1, 5))]
            both = libshard.concat(parts)
            world = draw.choice((1, 1, 2, 3))
            options = {"batch_size": draw.randint(1, 9), "shuffle": draw.choice(("global", "windows", False)), "world": world,
                       "rank": draw.randrange(world), "tail": "pad", "seed": draw.randrange(99)}  # fmt: skip
            for _ in self.check(both, [plain(r) for part in parts for r in part], **options):
                pass

    def test_refused(self):
        a, b = self.parts[0], libshard.pack([{"x": 1}], None, "other")
        with self.assertRaisesRegex(libshard.MismatchError, "pack both with the same fields"):
            a + b
        class Table(list):  # a DataFrame's items are its columns
            def __getitem__(self, name):
                raise KeyError(name)

        columns = {"x": np.arange(3)}
        for call, kind, words in (
            (lambda: a[Table([1, 2])], TypeError, "indexed by a number, a slice"),
            (lambda: libshard.Loader(a, 2, epochs="inf"), TypeError, "epochs='inf'; must be 1, .*or None"),
            (lambda: libshard.Loader(a, 2, epochs=float("inf")), TypeError, "epochs=inf; must be 1, .*or None"),
            (lambda: libshard.pack(columns, None, "k", key=lambda i, s: s["z"]), libshard.RecordError,
             r"sample 0: the function key= asks for 'z', .*which has \['x'\]; with a schema"),
        ):  # fmt: skip
            with self.assertRaisesRegex(kind, words):
                call()
        for source in (self.both, self.both.where(label=[0, 1]), self.both.dataset):
            # One sentence for both, which says what to do.
            for option, call in (("dataset", libshard.balanced), ("sources", lambda source: libshard.mix([a, source]))):
                words = rf"^{option}=<libshard.*a concatenation cannot be a source.*\.pack\(both, None, out\).*libshard\.mix\(\) its parts"
                with self.assertRaisesRegex(TypeError, words):
                    call(source)
        for source in (self.both, a, libshard.zip(a, y=np.arange(31))):
            with self.assertRaisesRegex(TypeError, r"must be a list of datasets or selections, as libshard.mix\(\[a, b\]\)"):
                libshard.mix(source)
        swapped = [libshard.pack([dict(zip(names, (1, 2)))] * 2, None, "".join(names)) for names in ("xy", "yx")]
        said = r"xy has the fields \['x', 'y'\], and yx .*\.pack\(b, a\.schema"
        with self.assertRaisesRegex(libshard.MismatchError, said):
            swapped[0] + swapped[1]
        both = swapped[0] + libshard.pack(swapped[1], swapped[0].schema, "again")
        self.assertEqual([(both[i]["x"], both[i]["y"]) for i in range(4)], [(1, 2), (1, 2), (2, 1), (2, 1)])
        rows = {"x": np.zeros((3, 2)), "y": np.zeros(3)}
        tables = [
            libshard.pack(rows, None, f"table{n}", provenance=f"columns x {names}" if names else "")
            for n, names in enumerate(('["a", "b"]', '["b", "a"]', '["a", "b"]', ""))
        ]
        words = r"field 'x' has the columns \['a', 'b'\] in table0, and \['b', 'a'\] in table1, so a number would mean two"
        with self.assertRaisesRegex(libshard.MismatchError, words):
            tables[0] + tables[1]
        with self.assertRaisesRegex(libshard.MismatchError, words):
            libshard.concat([(tables[3] + tables[0]).select([4]), tables[1]])
        self.assertEqual((len(tables[0] + tables[2]), len(tables[0] + tables[3])), (6, 6))
        for parts, names in ([0, 2], {"x": ["a", "b"]}), ([0, 3], {}), ([3, 0], {}):
            both = libshard.concat([tables[i] for i in parts])
            self.assertEqual(both.dataset.columns, names)
            with self.assertRaisesRegex(libshard.ArgumentError, "field 'z' is not in"):
                both.column("z")
        mixed = libshard.mix([tables[0], tables[2], tables[1].select([1])])
        with self.assertRaisesRegex(libshard.MismatchError, words):
            libshard.Loader(mixed, 1)
        libshard.Loader(mixed, 1, fields=["y"]).close()
        checked = libshard.open("part0", check="never")
        with self.assertRaisesRegex(libshard.ArgumentError, "different options check or guard"):
            libshard.Loader(checked + a, 4)

    def test_texts_in_lists_may_be_longer_in_a_part(self):
        """Rows have the shape that is widest on each axis, in whichever part; a mixture has it so as well."""
        texts = [["é" * (n % 3), "b" * (n % 5), ""][: n % 4] for n in range(40)]
        sizes = (2, 8), (3, 4), (3, 12)
        parts = [libshard.pack([{"t": texts[n], "x": n} for n in range(at, 40, 3) if len(texts[n]) <= most],
                               {"t": f"text[<={most},{size}]", "x": "int64"}, f"t{at}", compress=(None, "lz4")[at % 2])
                 for at, (most, size) in enumerate(sizes)]  # fmt: skip
        kept = [part[i]["x"] for part in parts for i in range(len(part))]
        one = libshard.pack([{"t": texts[n], "x": n} for n in kept], {"t": "text[<=3,12]", "x": "int64"}, "t")
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            both = libshard.concat([parts[i] for i in order])
            for source in (both, libshard.mix([parts[i] for i in order]), both.where(x=lambda x: x % 2 == 0)):
                for strings in ("rows", "lists"):
                    seen = 0
                    for batch in libshard.Loader(source, 7, strings=strings, seed=1, max_steps=9):
                        numbers = batch["x"].tolist()
                        seen += len(numbers)
                        want = one[[kept.index(n) for n in numbers]]
                        if strings == "lists":
                            self.assertEqual(batch["t"], [texts[n] for n in numbers])
                        else:
                            for name in ("t", "t_length"):
                                got, right = (np.asarray(rows[name]).ravel().tolist() for rows in (batch, want))
                                self.assertEqual(got, right)
                            self.assertEqual(batch["t"].shape[1:], (3, 12))
                    self.assertTrue(seen)
        longer = libshard.pack([{"t": np.ones((2, 2, 2), "u1"), "x": 1}], {"t": "uint8[2,2,2]", "x": "int64"}, "t3")
        with self.assertRaisesRegex(libshard.MismatchError, "pack both with the same fields"):
            both + longer

    def test_columns_of_a_dataset_are_as_its_own_loader_has_them(self):
        schema = [
            libshard.Field("points", "float32", (7, 2), "ragged"),
            libshard.Field("words", "uint8", (20,), "string", semantic="text"),
            libshard.Field("list", "uint8", (3, 9), "ragged", semantic="text"),
            libshard.Field("tokens", "uint16", (5,), "ragged", layout="tokens", semantic="tokens"),
            libshard.Field("one", "float16", ()),
        ]
        rows = [
            {"points": np.full((i % 8, 2), i, "f4"), "words": "é" * (i % 5), "list": ["w"] * (i % 4),
             "tokens": np.arange(i % 6, dtype="u2"), "one": i}
            for i in range(50)
        ]  # fmt: skip
        side = libshard.pack(rows, schema, "side", order="source")
        base = libshard.pack([{"x": i} for i in range(50)], {"x": "int64"}, "base", order="source")
        for strings in ("rows", "lists"):
            want = next(iter(libshard.Loader(side, 50, shuffle=False, strings=strings)))
            names = [name for name in want if name not in want.item_names]
            for source in (base, base.where(x=lambda x: x % 3 == 0)):
                for batch in libshard.Loader(libshard.zip(source, side), 8, seed=2, strings=strings):
                    at = batch.index.tolist()
                    self.assertEqual([name for name in batch if name in names], names)
                    for name in names:
                        if isinstance(want[name], list):
                            self.assertEqual(batch[name], [want[name][i] for i in at])
                            continue
                        self.assertEqual(batch[name].dtype, want[name].dtype, name)
                        np.testing.assert_array_equal(np.asarray(batch[name]), np.asarray(want[name])[at], name)
                    inside = np.arange(7) < np.asarray(batch["points_length"])[:, None]
                    self.assertEqual(int(inside.sum()), sum(i % 8 for i in at))


if __name__ == "__main__":
    unittest.main()
