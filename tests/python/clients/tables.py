# SPDX-License-Identifier: Apache-2.0
"""Tables of the real libraries become datasets, or one sentence says why not; run by tables.sh."""

import datetime
import decimal
import json
import os
import pathlib
import pickle
import shutil
import unittest
import warnings
from unittest import mock

import libshard
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from libshard import _table_files

ROWS = 500
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table,
          "batch": lambda columns: pa.RecordBatch.from_pydict({n: pa.array(c) for n, c in columns.items()})}


def wide():
    rng = np.random.default_rng(1)
    floats = {f"price in {i} EUR": rng.random(ROWS) for i in range(50)}
    whole = {f"count_{i}": rng.integers(-9, 9, ROWS) for i in range(20)}
    return {**floats, **whole, "label": rng.integers(0, 3, ROWS), "name": [f"row {i}é" for i in range(ROWS)],
            "good": rng.random(ROWS) < 0.5, "weight": rng.random(ROWS).astype("f4")}  # fmt: skip


def keep_peak(i, row):
    """A key.  Now and then it writes how many KiB this process has that are not pages of a file."""
    if i % 500 == 0:
        status = pathlib.Path("/proc/self/status").read_text()
        with open("peak", "a") as f:
            f.write(status.partition("RssAnon:")[2].split()[0] + "\n")
    return str(i)


class Tables(unittest.TestCase):
    def pack(self, table, schema=None, **options):
        return libshard.pack(table, schema, "ours", replace=True, **options)

    def refuse(self, table, words, schema=None, error=libshard.ArgumentError, **options):
        with self.assertRaisesRegex(error, words):
            self.pack(table, schema, **options)

    def test_74_columns_are_6_fields_and_found_by_name(self):
        columns = wide()
        ids = set()
        for kind, make in MAKERS.items():
            with self.subTest(kind):
                ds = self.pack(make(columns))
                ids.add(ds.id)
                names = [f.name for f in ds.schema if f.semantic != "length"]
                self.assertEqual(names, ["float64", "int64", "label", "name", "good", "weight"])
                self.assertEqual(list(ds.columns), ["float64", "int64"])
                self.assertEqual(ds.columns["float64"], list(columns)[:50])
                for name, column in columns.items():
                    if name != "name":
                        self.assertEqual(np.asarray(ds.column(name)).tolist(), column.tolist(), name)
                self.assertEqual([ds[i]["name"] for i in range(ROWS)], columns["name"])
                self.assertTrue(ds.verify().ok)
                with self.assertRaisesRegex(libshard.ArgumentError, "no_such"):
                    ds.column("no_such")
        self.assertEqual(len(ids), 1)

    def test_names_of_stacked_columns_that_are_given_for_fields(self):
        ds = self.pack(pd.DataFrame({"n": [1, 2, 3], "episode": [0, 0, 1], "x": [0.5, 1, 2], "s": ["r1", "r7", "r2"]}))
        words = r"; it is column 1 of the field 'int64', and a schema with 'episode': None makes it a field.*ds.column\('episode'\)"
        for call in (lambda: ds.where(episode=1), lambda: libshard.Loader(ds, 2, fields=["episode"]),
                     lambda: libshard.Loader(ds, 2, window=(-1, 0)), lambda: ds.to_pandas(["episode"]),
                     lambda: libshard.export(ds, "no.parquet", fields=["episode"])):  # fmt: skip
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                call()
        with self.assertRaisesRegex(libshard.ArgumentError, "field 'other' is not in ours, which has int64, x, s, s_length$"):
            ds.where(other=1)
        self.assertEqual(ds.where(episode=lambda episode: episode == 1).records.tolist(), [2])

    def test_a_schema_chooses_columns_and_stacks_none(self):
        columns = wide()
        for make in MAKERS.values():
            ds = self.pack(make(columns), {"count_3": None, "weight": "float32", "name": "text[<=20]"})
            self.assertEqual([f.name for f in ds.schema if f.semantic != "length"], ["count_3", "weight", "name"])
            self.assertEqual(ds.columns, {})
            self.assertEqual(np.asarray(ds.column("count_3")).tolist(), columns["count_3"].tolist())

    def test_columns_of_tables_that_lie_beside(self):
        def table(path, first, *names):
            frame = pd.DataFrame({name: np.arange(first, first + 5) + 100.0 * i for i, name in enumerate(names)})
            return libshard.pack(frame.astype("float64" if path < "d" else "float32"), None, path)

        body = table("a", 0, "height", "weight") + table("b", 5, "height", "weight")
        food = table("d", 20, "bread", "weight") + table("e", 25, "bread", "weight")
        both = libshard.zip(body, food)
        self.assertEqual(both.column("bread").tolist(), [20.0 + i for i in range(10)])
        self.assertEqual(both.column("height").tolist(), [0.0 + i for i in range(10)])
        some = libshard.zip(body.select([2, 7]), food)
        self.assertEqual((some.column("bread").tolist(), some.column("height").tolist()), ([22.0, 27.0], [2.0, 7.0]))
        with self.assertRaisesRegex(libshard.ArgumentError, "column 'weight' is in .* and in .*; take it from one"):
            both.column("weight")
        with self.assertRaisesRegex(libshard.ArgumentError, "field 'price' is not in a concatenation of 2 datasets, which has "):
            both.column("price")

    def test_keys_shuffle_and_shards(self):
        columns = wide()
        for make in MAKERS.values():
            options = {"key": "name", "order": "shuffle", "seed": 3, "shard_records": 64, "provenance": "of us"}
            ds = self.pack(make(columns), **options)
            self.assertGreater(ds.shard_count, 1)
            self.assertNotIn("name", ds.schema)
            for i in (0, 7, ROWS - 1):
                row = ds.by_key(columns["name"][i])["float64"].tolist()
                self.assertEqual(row, [columns[name][i] for name in ds.columns["float64"]])
            self.assertNotEqual(ds.index_of("row 7é"), 7)

    def test_categories_are_the_names_of_labels(self):
        texts = ["cat", "dog", "cat", "owl"]
        for table in (
            pd.DataFrame({"label": pd.Categorical(texts, ["owl", "dog", "cat", "eel"])}),
            pl.DataFrame({"label": texts}, schema={"label": pl.Enum(["owl", "dog", "cat", "eel"])}),
        ):
            ds = self.pack(table)
            self.assertEqual(ds.classes, ["owl", "dog", "cat", "eel"])
            self.assertEqual([ds.classes[ds[i]["label"]] for i in range(4)], texts)
            ds = self.pack(table, classes=["dog", "cat", "owl"])  # ours have another order
            self.assertEqual([ds.classes[ds[i]["label"]] for i in range(4)], texts)
        parts = (texts[:2], texts[2:][::-1])  # each has a dictionary of its own
        coded = pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])
        ds = self.pack(pa.table({"label": coded}))
        self.assertEqual([ds.classes[ds[i]["label"]] for i in range(4)], ["cat", "dog", "owl", "cat"])
        self.refuse(pd.DataFrame({"kind": pd.Categorical(texts)}), "column 'kind' is a category, and only")
        self.refuse(pa.table({"kind": coded}), "column 'kind' is a category, and only")
        self.refuse(pl.DataFrame({"kind": pl.Series(texts, dtype=pl.Categorical)}), "column 'kind' .* is a category")
        ds = self.pack(pd.DataFrame({"kind": pd.Categorical(texts)}), {"kind": "text[<=3]"})
        self.assertEqual([ds[i]["kind"] for i in range(4)], texts)

    def test_missing_values_are_refused(self):
        for table in (
            pd.DataFrame({"a": pd.array([1, None, 3], "Int64")}),
            pd.DataFrame({"a": pd.array([1.5, None, 3], pd.ArrowDtype(pa.float64()))}),
            pd.DataFrame({"a": ["x", None, "y"]}),
            pd.DataFrame({"a": pd.Series(["x", None, "y"], dtype="string")}),
            pd.DataFrame({"a": pd.Series([True, None, False], dtype=object)}),
            pd.DataFrame({"a": pd.Categorical(["x", None, "y"])}),
            pl.DataFrame({"a": [1, None, 3]}),
            pl.DataFrame({"a": ["x", None, "y"]}),
            pa.table({"a": [1.5, None, 3]}),
            pa.table({"a": ["x", None, "y"]}),
            pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode()}),
        ):
            self.refuse(table, r"column 'a' \(.*\): 1 of 3 values are missing; leave these rows out")
        inner = pa.array([[1, 2], [3, None]], pa.list_(pa.int32(), 2))
        self.refuse(pa.table({"a": inner}), r"column 'a' .*: 1 of 4 values are missing")
        inner = pl.Series([[1, 2], [3, None]], dtype=pl.Array(pl.Int32, 2))
        self.refuse(pl.DataFrame({"a": inner}), r"column 'a' .*: 1 of 4 values are missing")
        coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["x", None]))
        self.refuse(pa.table({"label": coded}), r"column 'label' .*: 1 of 3 values are missing")

    def test_nan_is_a_number_of_which_a_warning_tells(self):
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                ds = self.pack(make({"a": np.array([1, np.nan, 3]), "b": np.ones(3)}))
            self.assertIn("has 1 NaN", str(told[0].message))
            self.assertTrue(np.isnan(ds[1]["float64"][0]))

    def test_numbers_that_know_of_missing_ones(self):
        table = pd.DataFrame({"a": pd.array([1, 2], "Int16"), "b": pd.array([3, 4], pd.ArrowDtype(pa.int16()))})
        self.assertEqual(np.asarray(self.pack(table).column("b")).tolist(), [3, 4])

    def test_what_is_no_number_and_no_text(self):
        day, some = datetime.datetime(2026, 1, 2), decimal.Decimal("1.5")
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            self.refuse(make({"a": [day]}), r"column 'a' \(.*\) is not numbers or text; give numbers, as the seconds")
        for make in (pl.DataFrame, pa.table):
            self.refuse(make({"a": [some]}), r"column 'a' \(.*\) is not numbers or text; give float64 or text")
            self.refuse(make({"a": [{"x": 1}]}), r"column 'a' \(.*\) is not numbers or text; give each of its items")
        self.refuse(pd.DataFrame({"a": [1j]}), r"column 'a' \(complex128\) is not numbers or text")
        self.refuse(pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), r"column 'a' \(Sparse")
        self.refuse(pd.DataFrame({"a": ["x", 1]}, dtype=object), "column 'a' .* values of several types: int, str")

    def test_lists(self):
        values = np.arange(6, dtype="f4").reshape(3, 2)
        fixed = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 2)
        for table in (pa.table({"a": fixed}), pl.DataFrame({"a": values})):
            self.assertEqual(np.asarray(self.pack(table).column("a")).tolist(), values.tolist())
        lists = [[1, 2], [], [3]]
        for make in MAKERS.values():
            ds = self.pack(make({"a": lists}), {"a": "int64[<=2]"})
            self.assertEqual([ds[i]["a"].tolist() for i in range(3)], lists)

    def test_lists_keep_the_dtype_that_their_column_declares(self):
        kinds = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(), "int8": pa.int8(), "int32": pa.int32(),
                 "uint16": pa.uint16(), "uint64": pa.uint64(), "bool": pa.bool_()}  # fmt: skip
        for dtype, kind in kinds.items():
            rows = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
            if dtype == "uint64":
                rows[1, 1] = 2**64 - 1
            flat = pa.array([*rows], pa.list_(kind))
            nested = pa.array([[row, row, row] for row in rows], pa.list_(pa.large_list(kind)))
            for column, shape in (flat, (2,)), (nested, (3, 2)):
                of, lists, table = column.type, column.to_pylist(), pa.table({"a": column})
                frame = pd.DataFrame({"a": pd.Series(column, dtype=pd.ArrowDtype(of))})
                sources = [table, frame, *self.written(table, 2), *([] if dtype == "float16" else [pl.from_arrow(table)])]
                for source in sources:
                    for schema in None, {"a": None}:
                        with self.subTest(dtype=dtype, of=type(source).__name__, schema=schema):
                            ds = self.pack(source, schema)
                            self.assertEqual((ds.schema["a"].dtype, ds.schema["a"].shape), (dtype, shape))
                            self.assertEqual(ds.column("a").tolist(), lists)
                if dtype == "int32":
                    self.assertEqual(self.pack(frame, {"a": ("float64", shape)}).schema["a"].dtype, "float64")
        ragged = pa.table({"a": pa.array([[0.25, 1], [0.5]], pa.list_(pa.float32())), "label": [0, 1]})
        self.refuse(ragged, "record 1, field 'a'", error=libshard.RecordError)
        self.assertEqual([row["a"].tolist() for row in self.pack(ragged, {"a": "float32[<=2]"})], [[0.25, 1], [0.5]])
        tokens = pa.table({"tokens": pa.array([[1, 2], [3, 4]], pa.list_(pa.int32()))})
        self.assertEqual((self.pack(tokens).schema["tokens"].dtype, self.pack(tokens).schema["tokens"].semantic), ("int32", "tokens"))

    def test_items_that_are_missing_are_counted_in_all_groups_of_rows(self):
        rows = [[i, None if i % 2 else 1, 2] for i in range(20)]
        table = pa.table({"a": pa.array(rows, pa.list_(pa.float32(), 3))})
        for source in table, *self.written(table, 7):
            self.refuse(source, r"column 'a' \(fixed_size_list.*: 10 of 60 values are missing")

    def test_names(self):
        self.refuse(pd.DataFrame([[1, 2]], columns=["a", "a"]), "the DataFrame has several columns 'a'")
        self.assertEqual(self.pack(pd.DataFrame(np.ones((2, 30)))).columns["float64"][29], "29")
        table = pd.DataFrame({"a": [1.0], "b": [1.0], "float64": ["x"]})
        for other in (table, table.assign(float64=2.0), table.assign(float64=2, n=3), table.assign(float64=2, int64=3.0)):
            for columns in (list(other), list(other)[::-1]):
                self.refuse(other[columns], "column '(float|int)64' has the name of the field for the . columns of that")
        ds = self.pack(pd.DataFrame({"column_names": [1], "columns": [2], "dtype": [3]}))
        self.assertEqual(ds.columns, {"int64": ["column_names", "columns", "dtype"]})
        self.refuse(table[["a"]], "names= is not for tables", names=["a"])
        self.refuse(table[["a"]], "batched=True is not for tables", batched=True)

    def test_a_schema_that_names_what_is_no_column(self):
        for make in MAKERS.values():
            for schema in ({"c": None}, {"a": None, "c": "int64"}):
                self.refuse(make({"a": [1], "b": [2]}), r"schema: the .* has no column 'c'; it has \['a', 'b'\]", schema)

    def test_types_that_pandas_has_of_arrow(self):
        for kind in pa.large_string(), pa.string():
            frame = pd.DataFrame({"s": pd.Series(["é", "b"], dtype=pd.ArrowDtype(kind))})
            self.assertEqual([r["s"] for r in self.pack(frame)], ["é", "b"])
        frame = pd.DataFrame({"x": pd.Series([[1, 2], [3, 4]], dtype=pd.ArrowDtype(pa.large_list(pa.int64())))})
        self.assertEqual(self.pack(frame, {"x": "i64[2]"}).column("x").tolist(), [[1, 2], [3, 4]])

    def test_a_frame_that_is_not_computed_yet(self):
        with self.assertRaisesRegex(TypeError, r"not a LazyFrame; give what its collect.. returns"):
            self.pack(pl.LazyFrame({"x": [1, 2]}))

    def test_the_index_of_a_frame_is_not_lost_without_a_word(self):
        for index, what in (["a", "b"], "str"), (pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), "object"), ([0.5, 1], "float64"):
            self.refuse(pd.DataFrame({"x": [1, 2]}, index), f"the DataFrame's index of {what} is not one of its columns.*reset_index")
            self.assertEqual(len(self.pack(pd.DataFrame({"x": [1, 2]}, index), {"x": None})), 2)
        for index in [7, 7], [1, 0], pd.Index([1001, 57], dtype="Int64"):  # ids, or of rows that were chosen or shuffled
            with self.assertWarnsRegex(UserWarning, r"index, which begins with \[\d+, \d+\], is not one of .*names='row'"):
                self.assertEqual(self.pack(pd.DataFrame({"x": [1, 2]}, index)).column("x").tolist(), [1, 2])
            self.assertEqual(len(self.pack(pd.DataFrame({"x": [1, 2]}, index), {"x": None})), 2)
        for index in range(5, 7), [0, 1], pd.RangeIndex(4, 0, -2):
            self.assertEqual(self.pack(pd.DataFrame({"x": [1, 2]}, index)).column("x").tolist(), [1, 2])
        kept = pd.DataFrame({"x": [1.0, 2.0]}, [1001, 57]).reset_index(names="row")
        self.assertEqual(self.pack(kept).column("row").tolist(), [1001, 57])
        frame = pd.DataFrame({"id": ["p", "q"], "a": [1.0, 2.0]}).set_index("id")
        self.refuse(frame, "the DataFrame's index 'id' is not one of its columns.*reset_index")
        self.assertEqual(self.pack(frame.reset_index(), key="id").index_of("q"), 1)
        self.assertEqual(len(self.pack(frame, {"a": None})), 2)
        self.assertEqual(len(self.pack(frame.reset_index(drop=True))), 2)

    def test_whole_shards_are_as_those_in_one_go(self):
        columns = wide()
        for kind, make in MAKERS.items():
            options = {"shard_records": 128, "key": "name", "order": "shuffle", "seed": 2}
            once = self.pack(make(columns), **options).id
            for workers in (0, 2) if kind == "pandas" else (0,):
                self.assertEqual(self.pack(make(columns), workers=workers, **options).id, once, kind)
        table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        self.assertEqual(self.pack(table, key=lambda i, row: f"{i} {row['float64'][1]}").key(1), "1 4.0")

    def test_the_index_that_a_file_of_pandas_has(self):
        frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=[7, 9])
        frame.to_parquet("index.parquet")
        self.refuse("index.parquet", "column '__index_level_0__' is the index of a frame of pandas.*index=False")
        self.assertEqual(len(self.pack("index.parquet", {"a": None})), 2)

    def test_a_label_that_is_the_key(self):
        frame = pd.DataFrame({"label": pd.Categorical(["u", "v"]), "x": [1, 2]})
        ds = self.pack(frame, key="label")
        self.assertEqual((ds.classes, ds.index_of("v")), ([], 1))

    def test_files(self):
        columns = wide()
        table = pa.table(columns)
        plain = self.pack(table).id
        pyarrow.parquet.write_table(table, "a.parquet", row_group_size=64)
        with pa.OSFile("file.arrow", "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
            writer.write_table(table)
        with pa.OSFile("stream.arrow", "wb") as f, pa.ipc.new_stream(f, table.schema) as writer:
            writer.write_table(table)
        for path in ("a.parquet", "file.arrow", "stream.arrow"):
            self.assertEqual(self.pack(path).id, plain)
        with open("a.parquet", "rb") as f:
            cut = f.read()[:-9]
        for path in ("cut.parquet", "cut.arrow"):
            with open(path, "wb") as f:
                f.write(cut)
            self.refuse(path, f"{path}: pyarrow cannot read it")
        with self.assertRaisesRegex(libshard.NotFoundError, "none.parquet"):
            self.pack("none.parquet")

    def test_a_stream_of_which_a_part_would_be_read(self):
        """pyarrow reads the first of two streams, or those batches that are there, and says nothing."""
        table = pa.table({"x": np.arange(20)})
        for legacy in False, True:
            options = pa.ipc.IpcWriteOptions(use_legacy_format=legacy)
            sink, ends = pa.BufferOutputStream(), []
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                for rows in table.slice(0, 10), table.slice(10):
                    writer.write_table(rows)
                    ends.append(sink.tell())
            whole = sink.getvalue().to_pybytes()
            path = pathlib.Path("part.arrow")
            path.write_bytes(whole)
            self.assertEqual(len(self.pack("part.arrow")), 20)  # the control
            path.write_bytes(whole + whole)
            self.refuse("part.arrow", f"has {len(whole):,} bytes behind the end of its stream.*give pyarrow.concat_tables")
            for end, rows in zip(ends, (10, 20), strict=True) if not legacy else ():  # whose mark is not to be told from zeros
                path.write_bytes(whole[:end])
                self.assertEqual(len(pa.ipc.open_stream(whole[:end]).read_all()), rows)
                self.refuse("part.arrow", "has no mark at its end, so it may be cut.*if it is whole, give pyarrow")

    def test_several_files(self):
        paths = ["part1.parquet", "part2.parquet"]
        for i, path in enumerate(paths):
            pyarrow.parquet.write_table(pa.table({"x": [2 * i, 2 * i + 1]}), path)
        self.refuse(paths, r"of several files of a table, give pyarrow.dataset.dataset.paths..to_table..", error=libshard.RecordError)
        self.assertEqual(self.pack(pyarrow.dataset.dataset(paths).to_table()).column("x").tolist(), [0, 1, 2, 3])

    def test_a_folder_that_is_called_like_a_file(self):
        os.mkdir("spark.parquet")
        pyarrow.parquet.write_table(pa.table({"x": np.arange(3)}), "spark.parquet/part-0.parquet")
        self.refuse("spark.parquet", r"spark.parquet: is a folder, and pack.. reads one file; give pyarrow.dataset.dataset.path.")

    def test_tables_that_are_read_by_other_calls(self):
        table = pa.table({"x": [0, 1, 2]})
        os.makedirs("many/part=1")
        pyarrow.parquet.write_table(table, "many/part=1/a.parquet")
        os.mkdir("arrows")
        pathlib.Path("arrows/a.arrow").write_bytes(b"")
        for source, words in (
            ("many", r"give pyarrow.dataset.dataset\('many'\).to_table\(\)$"),
            (pathlib.Path("arrows"), r"give pyarrow.dataset.dataset\('arrows', format='arrow'\).to_table\(\)$"),
            ("x.csv", r"give pandas.read_csv\('x.csv'\)$"), ("x.tsv", r"read_csv\('x.tsv', sep='\\t'\)$"),
            ("x.feather", r"give pyarrow.feather.read_table\('x.feather'\)$"),
            (pyarrow.dataset.dataset("many"), r"give what its to_table\(\) returns$"),
        ):  # fmt: skip
            self.refuse(source, words, error=TypeError)
        self.refuse("many/*/*.parquet", r"is a pattern, and .*give pyarrow.dataset.dataset.sorted.glob.glob.pattern")
        self.assertEqual(len(self.pack(pyarrow.dataset.dataset("many").to_table())), 3)

    def written(self, table, rows):
        """Files of it: Parquet in row groups, Arrow in record batches, and a stream of these."""
        pyarrow.parquet.write_table(table, "groups.parquet", row_group_size=rows)
        with pa.OSFile("file.arrow", "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
        with pa.OSFile("stream.arrow", "wb") as f, pa.ipc.new_stream(f, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
        return "groups.parquet", "file.arrow", "stream.arrow"

    def test_groups_of_rows_are_read_by_the_workers_that_need_them(self):
        columns = wide() | {"list": [[i, i + 1, 2] for i in range(ROWS)], "bytes": [b"x" * (i % 9) for i in range(ROWS)],
                            "a": np.arange(ROWS), "a.b": [f"{i}" for i in range(ROWS)]}  # fmt: skip
        columns["label"] = pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS) % 3), ["cat", "dog", "owl"])
        fixed = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 6, dtype="f4")), 6)
        table = pa.table(columns | {"fixed": fixed})
        for options in {}, {"order": "shuffle", "seed": 3}:
            want = self.pack(table, key="a.b", shard_records=90, **options)
            for path in self.written(table, 64):
                for workers in (None, 0, 1, 2, 7) if not options else (2,):
                    got = self.pack(path, key="a.b", shard_records=90, workers=workers, **options)
                    self.assertEqual((got.id, got.classes), (want.id, ["cat", "dog", "owl"]), (path, workers, options))
        for rows in 1, 7, 500:  # groups may have any size
            for path in self.written(table, rows):
                self.assertEqual(self.pack(path, key="a.b", shard_records=90).id, self.pack(table, key="a.b", shard_records=90).id)

    def test_names_of_a_category_are_those_of_all_groups(self):
        parts = [pa.table({"label": pa.array(texts).dictionary_encode(), "x": [1.5, 2.5]})
                 for texts in (["cat", "dog"], ["owl", "cat"], ["dog", "owl"])]  # fmt: skip
        table = pa.concat_tables(parts)
        with pa.OSFile("names.arrow", "wb") as f, pa.ipc.new_stream(f, table.schema) as writer:
            for part in parts:
                writer.write_table(part)
        with pyarrow.parquet.ParquetWriter("names.parquet", table.schema) as writer:
            for part in parts:
                writer.write_table(part)
        for source in table, "names.arrow", "names.parquet":
            for workers in None, 2:
                ds = self.pack(source, workers=workers, shard_records=2)
                self.assertEqual(([ds[i]["label"] for i in range(6)], ds.classes), ([0, 1, 2, 0, 1, 2], ["cat", "dog", "owl"]))

    def test_classes_that_are_numbered_as_they_come(self):
        """Polars writes a Categorical so: files of training and of validation would have other numbers for one class."""
        pl.DataFrame({"label": ["owl", "cat", "owl"]}).with_columns(pl.col("label").cast(pl.Categorical)).write_parquet("a.parquet")
        for source in "a.parquet", pyarrow.parquet.read_table("a.parquet"):
            with self.assertWarnsRegex(UserWarning, r"'label' are numbered as they come in it: \['owl', 'cat'\].*classes=\[...\] says"):
                self.assertEqual(self.pack(source).column("label").tolist(), [0, 1, 0])
            self.assertEqual(self.pack(source, classes=["cat", "owl"]).column("label").tolist(), [1, 0, 1])
        for texts, names in (["a", "b"], ["a", "b"]), (["b", "a"], ["a", "b"]), (["b", "a"], ["b", "a", "z"]), (["a"], ["b", "a"]):
            self.assertEqual(self.pack(pa.table({"label": pd.Categorical(texts, names)})).classes, names)
        ordered = pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["b", "a"], ordered=True)
        self.assertEqual(self.pack(pa.table({"label": ordered})).classes, ["b", "a"])

    def test_a_null_in_the_last_group_is_refused(self):
        for column in [1.0] * 99 + [None], ["x"] * 99 + [None], [[1, 2]] * 99 + [None], [[1, 2]] * 99 + [[1, None]]:
            table = pa.table({"x": pa.array(column), "y": np.arange(100)})
            with self.assertRaises(libshard.Error) as whole:
                self.pack(table)
            for path in self.written(table, 10):
                for statistics in (True, False) if path.endswith("parquet") else (True,):
                    if not statistics:
                        pyarrow.parquet.write_table(table, path, row_group_size=10, write_statistics=False)
                    with self.assertRaises(libshard.Error) as e:
                        self.pack(path)
                    said = str(e.exception).replace("element", "item")  # Parquet's name for what a list has
                    self.assertEqual(said[:30], str(whole.exception)[:30], (path, statistics))

    def test_nulls_of_a_column_whose_name_begins_another_one(self):
        table = pa.table({"a": pa.array([1.0] * 95 + [None] * 5), "a.b": np.arange(100)})
        for path in self.written(table, 10):
            self.refuse(path, r"column 'a' \(double\): 5 of 100 values are missing")

    def test_memory_of_a_worker(self):
        """A worker has groups of the file, not all of it; a table in memory goes to each worker, which shows that this measures."""
        def most(source):
            pathlib.Path("peak").write_text("0\n")
            self.pack(source, key=keep_peak, workers=2, shard_records=25_000)
            return max(map(int, pathlib.Path("peak").read_text().split()))

        flat = pa.array(np.random.default_rng(1).random(150_000 * 128))  # 146 MiB
        table = pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, 128)})
        whole = most(table)
        for path in self.written(table, 2_000):
            self.assertLess(most(path), whole - (73 << 10), path)

    def test_columns_that_nobody_wants_are_not_read_to_be_shuffled(self):
        pyarrow.parquet.write_table(pa.table({"x": np.arange(90), "a": np.arange(90), "a.b": [f"{i}" for i in range(90)]}), "a.parquet")
        for schema, key, columns in (({"x": None}, "a.b", ["x", "a.b"]), ({"a": None}, None, ["a"]), (None, "a.b", None)):
            with mock.patch("pyarrow.parquet.ParquetFile.read", autospec=True, side_effect=pyarrow.parquet.ParquetFile.read) as read:
                ds = self.pack("a.parquet", schema, key=key, order="shuffle", seed=3)
            self.assertEqual(read.call_args.args[1], columns)
            numbers = libshard._core.shuffle(3, 90, 0, 90).tolist()
            self.assertEqual([ds.key(i) for i in range(90)], [f"{i}" if key else "" for i in numbers])
            if schema:
                self.assertEqual(ds.column(*schema).tolist(), numbers)
        self.refuse("a.parquet", r"has no column 'z'; it has \['x', 'a', 'a.b'\]", {"z": None}, order="shuffle", seed=3)

    def test_a_group_that_is_damaged_and_a_file_that_changes(self):
        table = pa.table({"x": np.random.default_rng(1).random(1000), "name": [f"row {i}" for i in range(1000)]})
        pyarrow.parquet.write_table(table, "bad.parquet", row_group_size=100, compression="zstd", write_page_checksum=True)
        place = pyarrow.parquet.ParquetFile("bad.parquet").metadata.row_group(7).column(0).data_page_offset
        with open("bad.parquet", "r+b") as f:
            f.seek(place + 200)
            f.write(bytes(300))
        for workers in None, 0, 2:
            with self.assertRaisesRegex(libshard.Error, "bad.parquet: pyarrow cannot read it"):
                libshard.pack("bad.parquet", None, "bad", workers=workers, shard_records=300)
            self.assertFalse(os.path.exists("bad/dataset.manifest"))
            shutil.rmtree("bad", ignore_errors=True)
        with mock.patch("libshard._table_files.TableFile.read", autospec=True, side_effect=_table_files.TableFile.read) as read, \
             self.assertWarnsRegex(UserWarning, "100 of 1,000 samples were left out"):  # fmt: skip
            ds = libshard.pack("bad.parquet", {"x": None}, "bad", on_error="skip", shard_records=300)
        self.assertEqual(ds.column("x").tolist(), np.delete(table["x"].to_numpy(), slice(800, 900)).tolist())  # x of the next group
        self.assertLess(read.call_count, 50)  # not again for each of its rows
        for workers in 0, 2:  # and it does not show which of them it was read for
            shutil.rmtree("bad")
            with self.assertWarnsRegex(UserWarning, "100 of 1,000 samples were left out"):
                libshard.pack("bad.parquet", {"x": None}, "bad", workers=workers, on_error="quarantine", shard_records=170)
            with open("bad.quarantine/quarantine.jsonl") as f:
                self.assertEqual(len({json.loads(line)["traceback"] for line in f}), 1)
            shutil.rmtree("bad.quarantine")
        pyarrow.parquet.write_table(table, "new.parquet", row_group_size=100)
        file = _table_files.TableFile("new.parquet")
        column = pickle.dumps(_table_files.StoredColumn(file, "x", False))
        self.assertLess(len(column), 4096)
        self.assertEqual(pickle.loads(column)[150], table["x"][150].as_py())
        pyarrow.parquet.write_table(table.slice(1), "new.parquet", row_group_size=100)
        with self.assertRaisesRegex(libshard.MismatchError, "new.parquet: was changed while it was packed"):
            pickle.loads(column)[150]
        # That is not the fault of samples, so none is left out for it.
        with mock.patch.object(_table_files.TableFile, "release", lambda file: os.utime(file.path, ns=(1, 1))):
            with self.assertRaisesRegex(libshard.MismatchError, "new.parquet: was changed while it was packed"):
                libshard.pack("new.parquet", None, "changed", workers=1, shard_records=300, on_error="skip")

    def test_what_was_exported_is_packed_again(self):
        rng = np.random.default_rng(5)
        rows = [
            {"label": i % 2, "score": float(i) / 3, "pose": rng.random((2, 3)).astype("f4"), "good": i % 3 == 0, "name": f"é{i}",
             "boxes": rng.random((i % 5, 4)).astype("f4"), "half": np.array([i, 0.5], "f2"), "list": ["a"] * (i % 3),
             "mask": rng.integers(0, 9, (4, 5), "u1"), "tokens": np.arange(7) + i, "key": f"k{i}"} for i in range(90)
        ]  # fmt: skip
        schema = {"label": "int64", "score": "float32", "pose": "float32[2,3]", "good": "bool", "name": "text[<=20]",
                  "boxes": "boxes[<=4]", "half": "float16[2]", "list": "text[<=5,20]", "mask": "mask[4,5]", "tokens": None}  # fmt: skip
        options = {"key": "key", "shard_records": 40}
        for n, (source, schema, more) in enumerate((
            (pa.table(wide()), None, {}),
            (pa.table(wide() | {"label": np.arange(ROWS) % 2}), None, {"classes": ["cat", "dog"], "shard_records": 64}),
            (rows, schema, {"classes": ["cat", "dog"], **options}),
            (rows, schema, {"classes": ["1", "0"], **options, "provenance": "of us"}),
        )):  # fmt: skip
            ds = libshard.pack(source, schema, "first", replace=True, **more)
            libshard.export(ds, f"{n}.parquet")
            again = self.pack(f"{n}.parquet", **{name: value for name, value in more.items() if name != "classes"})
            self.assertEqual((again.id, again.columns, again.classes), (ds.id, ds.columns, ds.classes))
            self.assertEqual(self.pack(ds.to_arrow(), **{k: v for k, v in more.items() if k != "classes"}).id, ds.id)
        plain = pyarrow.parquet.read_table("0.parquet").replace_schema_metadata(None)
        self.assertNotEqual(self.pack(plain).columns, libshard.pack(pa.table(wide()), None, "first", replace=True).columns)
        few = pyarrow.parquet.read_table("0.parquet").select(["float64", "label"])
        self.assertEqual(list(self.pack(few).columns), ["float64"])
        self.assertEqual(list(self.pack(few, {"float64": None}).columns), ["float64"])
        self.refuse(few.replace_schema_metadata({"libshard.schema": "[1]"}), "metadata 'libshard' of the table do not read")
        exact = pa.array([[1 / 3, 2 / 3]] * 90, pa.list_(pa.float64(), 2))  # a column that was put there since
        table = pyarrow.parquet.read_table("2.parquet")
        changed = self.pack(table.set_column(table.column_names.index("half"), "half", exact), key="key")
        self.assertEqual(changed.column("half").tolist(), exact.to_pylist())
        keyed = pyarrow.parquet.read_table("2.parquet")
        self.assertIn("key", self.pack(keyed).schema)  # nothing is left out without a word

    def test_large_fields_are_not_left_out_without_a_word(self):
        ds = self.pack({"emb": np.zeros((3, 257), "f4"), "y": [1, 2, 3], "image": np.zeros((3, 40, 40, 3), "u1")})
        for call in ds.to_pandas, ds.to_arrow, ds.select([1, 2]).to_pandas:
            with self.assertWarnsRegex(UserWarning, r"leave out fields of more than 1,024 bytes, here 'emb'; .*\['y', 'emb'\]") as told:
                call()
            self.assertEqual(told.filename, __file__)
            self.assertEqual(len(call(["y", "emb"])), 3 if call.__self__ is ds else 2)
        few = self.pack({"emb": np.zeros((3, 256), "f4"), "image": np.zeros((3, 40, 40, 3), "u1")})
        self.assertEqual((list(few.to_pandas()), few.to_pandas().attrs["left_out"]), (["emb"], ["image"]))

    def test_class_names_of_hugging_face(self):
        features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
        table = pa.table({"label": [1, 0, 1]})
        for text, classes in ((json.dumps({"info": {"features": features}}), ["cat", "dog"]), ("{}", [])):
            pyarrow.parquet.write_table(table.replace_schema_metadata({"huggingface": text}), "hf.parquet")
            self.assertEqual(self.pack("hf.parquet").classes, classes)
        for text in ("x", "[]", '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}'):
            self.refuse(table.replace_schema_metadata({"huggingface": text}), "does not read as features; give c")
        images = pa.array([{"bytes": b"x", "path": "a.jpg"}])
        self.refuse(pa.table({"image": images}), r"column 'image' \(struct.* it has images as files")


if __name__ == "__main__":
    unittest.main()
