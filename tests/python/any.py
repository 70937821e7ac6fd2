# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the package, it does as NumPy does or raises as it says; nothing crashes."""

import gc
import shutil
import sys
import warnings

import data
import hypothesis
import libshard
import numpy as np
from hypothesis import strategies as st

CASES = int(sys.argv[1])
N, SIDE = 50, 40
WANT = data.pack_images("plain", N, "--shard-records", "20")
data.shardpack("raw", "plain.bin", "--schema", f"image:u8[{SIDE},{SIDE},3],label:i64", "-o", "packed",
               "--order", "source", "--shard-records", "20", "--compress", "lz4")  # fmt: skip
DATASETS = [libshard.open("plain"), libshard.open("packed")]
SAID = (libshard.Error, TypeError, ValueError, IndexError, KeyError, OverflowError, BufferError)
cases = 0
warnings.filterwarnings("ignore", "written: field 'x' has .* NaN and .* infinite")

numbers = st.one_of(
    st.integers(-2 * N, 2 * N), st.integers(), st.sampled_from([2**31, 2**32, 2**63, 2**64, -(2**63) - 1])
)
slices = st.builds(slice, *[st.one_of(st.none(), st.integers(-2 * N, 2 * N), st.integers())] * 3)
things = st.one_of(
    st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5), st.binary(max_size=5), st.just(...)
)
keys = st.one_of(
    numbers,
    slices,
    st.lists(numbers, max_size=9),
    things,
    st.lists(things, max_size=4),
    st.dictionaries(things, things, max_size=2),
)


def share(part):
    return hypothesis.settings(max_examples=int(CASES * part), deadline=None, database=None, derandomize=True,
                               suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip


def count():
    global cases
    cases += 1


def outcome(call):
    try:
        return call()
    except SAID as e:
        return e


@share(0.3)
@hypothesis.given(st.integers(0, 1), keys)
def index_a_dataset(which, key):
    count()
    got = outcome(lambda: DATASETS[which][key])
    if isinstance(got, dict):
        want = WANT[list(key) if isinstance(key, list) else key]
        assert np.asarray(got["image"]).tobytes() == want["image"].tobytes()
        assert (got["label"] if isinstance(got["label"], int) else got["label"].tolist()) == want["label"].tolist()
    elif type(key) is int:
        assert isinstance(got, IndexError) and not -N <= key < N, (key, got)
    else:
        assert not isinstance(key, slice) or key.step == 0, (key, got)


@share(0.3)
@hypothesis.given(
    st.integers(0, 1),
    slices,
    st.lists(st.one_of(numbers, slices, things, st.lists(st.one_of(numbers, slices)).map(tuple)), max_size=5),
    st.sampled_from(["", "copy", "dlpack", "buffer"]),
)
def take_arrays_apart(which, first, path, end):
    count()
    if first.step == 0:
        first = slice(None)
    ours, numpy = DATASETS[which][first]["image"], WANT["image"][first]
    for key in path:
        got = outcome(lambda: ours[key])
        if isinstance(got, Exception):
            assert isinstance(outcome(lambda: numpy[key]), Exception), (key, got)
            continue
        numpy = numpy[key]
        ours = got
        if not isinstance(ours, libshard.Array):
            assert np.array_equal(ours, numpy)
            return
    assert ours.shape == numpy.shape and (ours.size > 1000 or ours.tolist() == numpy.tolist())
    if end == "copy":
        ours = ours.copy()
    elif end == "dlpack":
        ours = np.from_dlpack(ours)
    elif end == "buffer":
        ours = memoryview(ours)
    gc.collect(0)
    assert np.asarray(ours).tobytes() == numpy.tobytes()


options = st.fixed_dictionaries(
    # What lies between is memory that would be filled, with a batch that is padded.
    {
        "batch_size": st.one_of(
            st.integers(1, 20),
            st.integers(-2, 200),
            st.sampled_from([2**31, 2**32 - 1, 2**32, 2**64, -(2**40)]),
            things,
        )
    },
    optional={
        "shuffle": st.one_of(st.booleans(), st.sampled_from(["auto", "sequential", "global", "windows"]), things),
        "seed": st.one_of(st.integers(0, 9), things),
        "rank": st.one_of(st.integers(0, 3), things),
        "world": st.one_of(st.integers(1, 4), things),
        "drop_last": st.one_of(st.booleans(), st.none()),
        "tail": st.sampled_from(["drop", "pad", "keep", "x"]),
        "prefetch": st.one_of(st.integers(1, 3), things),
        "max_held": st.one_of(st.integers(1, 3), things),
        "threads": st.one_of(st.integers(1, 2), things),
        "path": st.sampled_from(["auto", "map", "pread", "direct", ""]),
        "run_records": st.integers(0, 60),
        "window_runs": st.integers(0, 9),
        "lanes": st.integers(0, 9),
        "stage_bytes": st.one_of(st.integers(0, 10**6), things),
        "on_corrupt": st.sampled_from(["fail", "mask", "substitute"]),
    },
)
steps = st.lists(
    st.sampled_from(["next", "next", "next", "hold", "drop", "state", "load", "epoch", "iter", "look", "gc", "close"]),
    max_size=12,
)


def check_batch(batch):
    index = batch.index.tolist()
    flags = batch.flags.tolist()
    assert set(flags) <= {0, libshard.PADDED}
    assert (
        np.asarray(batch["image"]).tobytes() == WANT[index]["image"].tobytes()
        and batch["label"].tolist() == WANT[index]["label"].tolist()
    )


@share(0.4)
@hypothesis.given(st.integers(0, 1), options, steps)
def drive_a_loader(which, chosen, path):
    count()
    if any(isinstance(chosen.get(k), int) and chosen[k] > 100 for k in ("prefetch", "threads")):
        chosen = {**chosen, "prefetch": 2, "threads": 1}  # else it is memory and threads that run out
    loader = outcome(lambda: libshard.Loader(DATASETS[which], **chosen))
    if isinstance(loader, Exception):
        assert not isinstance(loader, (IndexError, KeyError, BufferError)), loader
        return
    held, state, iterator, closed, moved = [], None, iter(loader), False, False
    for step in path:
        moved = moved or step in ("load", "epoch")
        if step in ("next", "hold"):
            batch = outcome(lambda: next(iterator, None))
            if isinstance(batch, Exception):
                no_room = isinstance(batch, libshard.OutOfMemoryError) and chosen["batch_size"] > 10**6
                expected = isinstance(batch, libshard.ClosedError) if closed else (
                    no_room or "still held" in str(batch) or (moved and "this loop is over" in str(batch))
                )
                assert expected, batch
                iterator, moved = iter(()) if closed else iter(loader), False
            elif batch is not None:
                check_batch(batch)
                held += [(batch["image"], batch.index.tolist())] if step == "hold" else []
            del batch
        elif step == "drop":
            held = held[1:]
        elif step == "state":
            state = outcome(loader.state_dict)
        elif step == "load":
            outcome(lambda: loader.load_state_dict(state))
        elif step == "epoch":
            outcome(lambda: loader.set_epoch(3))
        elif step == "iter":
            iterator = outcome(lambda: iter(loader))
            iterator, moved = iter(()) if isinstance(iterator, Exception) else iterator, False
        elif step == "look":
            outcome(loader.stats), outcome(loader.summary), repr(loader), outcome(lambda: loader.indices(0, 0, 7))
        elif step == "gc":
            gc.collect()
        else:
            loader.close()
            closed = True
    for image, index in held:
        assert np.asarray(image).tobytes() == WANT[index]["image"].tobytes()


FIELDS = {"u1": "u8", "i2": "i16", "u8": "u64", "f2": "f16", "f4": "f32", "?": "bool"}
WHOLE = {"u1": (0, 255), "i2": (-(2**15), 2**15 - 1), "u8": (0, 2**64 - 1), "?": (0, 1)}
shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)


def nested(shape, leaves):
    return leaves if not shape else st.lists(nested(shape[1:], leaves), min_size=shape[0], max_size=shape[0])


class Says:
    """An array that says of itself whatever it is told to say; but of a place that is its own."""

    def __init__(self, array, said):
        self.array, self.said = array, said

    def __len__(self):
        return len(self.array)

    @property
    def __array_interface__(self):
        return {**self.array.__array_interface__, "data": self.array.tobytes(), **self.said}


@st.composite
def values(draw, dtype, shape):
    """A value for a field, and the array that is to be there.

    None instead of the array: the value is to be refused; ...: that is not foretold.
    """
    how = draw(
        st.sampled_from(
            ["array", "array", "strided", "list", "list", "number", "other dtype", "other shape", "says", "thing"]
        )
    )
    array = np.frombuffer(draw(st.binary(min_size=72, max_size=72)), "u1" if dtype == "?" else dtype)
    array = (array % 2).astype("?") if dtype == "?" else array
    array = np.resize(array, shape)
    if how == "array":
        return (
            draw(st.sampled_from([array, array.copy(order="F"), memoryview(array) if dtype != "?" else array])),
            array,
        )
    if how == "strided":
        wide = np.repeat(array, 2, axis=-1)[..., ::2] if shape else array
        return wide, array
    if how == "other dtype":
        other = draw(st.sampled_from(["i8", "f8", "i1", ">i4", "c8", "U3"]))
        with np.errstate(all="ignore"):
            return array.astype(other), ... if not shape else None
    if how == "other shape":
        other = draw(shapes)
        return np.resize(array, other), np.resize(array, other) if other == shape else None
    if how == "says":
        said = draw(
            st.dictionaries(
                st.sampled_from(["shape", "strides", "typestr", "data"]),
                st.one_of(things, st.lists(numbers, max_size=3).map(tuple), st.binary(max_size=40)),
                max_size=3,
            )
        )
        # Addresses are believed, as everywhere; all else is not.
        said = {k: v for k, v in said.items() if not (k == "data" and isinstance(v, tuple))}
        return Says(array, said), ...
    if how == "thing":
        return draw(st.one_of(things, st.lists(things, max_size=3))), ...
    low, high = WHOLE.get(dtype, (-1000, 1000))
    leaves = st.one_of(
        st.integers(low, high),
        st.sampled_from([low, high, low - 1, high + 1, 2**64, 0.5, -1e300]),
        st.floats(-1e5, 1e5, allow_nan=False),
    )
    value = draw(nested(shape, leaves) if how == "list" else leaves)
    flat = np.array(value, object).reshape(-1).tolist()
    if how == "number" and shape:
        return value, None
    if dtype in WHOLE:
        return value, np.array(value, dtype) if all(isinstance(v, int) and low <= v <= high for v in flat) else None
    with np.errstate(over="ignore"):
        want = np.array(value, "f8").astype(dtype)
    stored = want.reshape(-1).tolist()
    exact = all(type(v) is float or (-(2**63) <= v < 2**64 and int(w) == v) for v, w in zip(flat, stored))
    kept = np.isfinite(want).all() and exact
    return value, want if kept else None


@st.composite
def written(draw):
    dtype, shape, ragged = draw(st.sampled_from(sorted(FIELDS))), draw(shapes), draw(st.booleans())
    if ragged:
        shape = (draw(st.integers(1, 3)), *shape[1:])
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        part = (draw(st.integers(1, shape[0])), *shape[1:]) if ragged else shape
        value, want = draw(values(dtype, part))
        rows.append((value, ... if ragged and want is None else want))
    return dtype, shape, ragged, rows, draw(st.booleans()), draw(st.integers(0, 3)) == 0


@share(0.1)
@hypothesis.given(written())
def write_records(case):
    dtype, shape, ragged, rows, columns, finish = case
    count()
    axes = ",".join(map(str, shape))
    want = []
    with libshard.Writer(
        "written",
        f"x:{FIELDS[dtype]}" + (f"[{'<=' * ragged}{axes}]" if shape else ""),
        shard_records=2 if finish else 9,
    ) as writer:
        for value, expected in rows:
            said = outcome(lambda: writer.write_batch({"x": [value]}) if columns else writer.write({"x": value}))
            assert not isinstance(said, libshard.Error) or isinstance(said, libshard.RecordError), said
            if expected is None:
                assert isinstance(said, libshard.RecordError), (value, said)
            elif expected is not ...:
                assert said is None, (value, said)
            if said is None:
                want.append(expected)
        if not (want and finish):  # most time goes by waiting for a disk
            writer.abort()
            return
    ds = libshard.open("written")
    assert len(ds) == len(want)
    for got, expected in zip(ds, want, strict=True):
        if expected is not ...:
            bits = np.asarray(got["x"] if isinstance(got["x"], libshard.Array) else np.array(got["x"], dtype))
            same = bits.shape == expected.shape and bits.tobytes() == expected.tobytes()
            assert same or np.isnan(expected.astype("f8")).any(), (got, expected)
    ds.close()
    shutil.rmtree("written")


for test in (index_a_dataset, take_arrays_apart, drive_a_loader, write_records):
    test()
assert cases >= CASES * 0.8, cases
print(f"{cases} cases")
