# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the package, it does what NumPy does or raises what it says that it raises; and nothing crashes."""

import gc
import sys

import data
import hypothesis
import libshard
import numpy as np
from hypothesis import strategies as st

CASES = int(sys.argv[1])
N, SIDE = 50, 40
WANT = data.pack_images("plain", N, "--shard-records", "20")
data.shardpack("raw", "plain.bin", "--schema", f"image:u8[{SIDE},{SIDE},3],label:i64", "-o", "packed", "--order", "source",
               "--shard-records", "20", "--compress", "lz4")  # fmt: skip
DATASETS = [libshard.open("plain"), libshard.open("packed")]
SAID = (libshard.Error, TypeError, ValueError, IndexError, KeyError, OverflowError, BufferError)
cases = 0

numbers = st.one_of(st.integers(-2 * N, 2 * N), st.integers(), st.sampled_from([2**31, 2**32, 2**63, 2**64, -(2**63) - 1]))
slices = st.builds(slice, *[st.one_of(st.none(), st.integers(-2 * N, 2 * N), st.integers())] * 3)
things = st.one_of(st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5), st.binary(max_size=5), st.just(...))
keys = st.one_of(numbers, slices, st.lists(numbers, max_size=9), things, st.lists(things, max_size=4), st.dictionaries(things, things, max_size=2))


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
@hypothesis.given(st.integers(0, 1), slices, st.lists(st.one_of(numbers, slices, things), max_size=5), st.sampled_from(["", "copy", "dlpack", "buffer"]))
def take_arrays_apart(which, first, path, end):
    count()
    if first.step == 0:
        first = slice(None)
    ours, numpy = DATASETS[which][first]["image"], WANT["image"][first]
    for key in path:
        got = outcome(lambda: ours[key])
        if isinstance(got, Exception):
            continue
        numpy = numpy[key]
        ours = got
        if not isinstance(ours, libshard.Array):
            assert ours == numpy
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
    {"batch_size": st.one_of(st.integers(1, 20), st.integers(-2, 200), st.sampled_from([2**31, 2**32 - 1, 2**32, 2**64, -(2**40)]), things)},
    optional={
        "shuffle": st.one_of(st.booleans(), st.sampled_from(["auto", "sequential", "global", "windows"]), things), "seed": st.one_of(st.integers(0, 9), things),
        "rank": st.one_of(st.integers(0, 3), things), "world": st.one_of(st.integers(1, 4), things), "drop_last": st.one_of(st.booleans(), st.none()),
        "tail": st.sampled_from(["drop", "pad", "keep", "x"]), "prefetch": st.one_of(st.integers(1, 3), things), "max_held": st.one_of(st.integers(1, 3), things),
        "threads": st.one_of(st.integers(1, 2), things), "path": st.sampled_from(["auto", "map", "pread", "direct", ""]), "run_records": st.integers(0, 60),
        "window_runs": st.integers(0, 9), "lanes": st.integers(0, 9), "stage_bytes": st.one_of(st.integers(0, 10**6), things),
        "on_corrupt": st.sampled_from(["fail", "mask", "substitute"]),
    },
)  # fmt: skip
steps = st.lists(st.sampled_from(["next", "next", "next", "hold", "drop", "state", "load", "epoch", "iter", "look", "gc", "close"]), max_size=12)


def check_batch(batch):
    index = batch.index.tolist()
    flags = batch.flags.tolist()
    assert set(flags) <= {0, libshard.PADDED}
    assert np.asarray(batch["image"]).tobytes() == WANT[index]["image"].tobytes() and batch["label"].tolist() == WANT[index]["label"].tolist()


@share(0.4)
@hypothesis.given(st.integers(0, 1), options, steps)
def drive_a_loader(which, chosen, path):
    count()
    if isinstance(chosen.get("prefetch"), int) and chosen["prefetch"] > 100 or isinstance(chosen.get("threads"), int) and chosen["threads"] > 100:
        chosen = {**chosen, "prefetch": 2, "threads": 1}  # else it is memory and threads that run out
    loader = outcome(lambda: libshard.Loader(DATASETS[which], **chosen))
    if isinstance(loader, Exception):
        assert not isinstance(loader, (IndexError, KeyError, BufferError)), loader
        return
    held, state, iterator, closed = [], None, iter(loader), False
    for step in path:
        if step in ("next", "hold"):
            batch = outcome(lambda: next(iterator, None))
            if isinstance(batch, Exception):
                no_room = isinstance(batch, libshard.OutOfMemoryError) and chosen["batch_size"] > 10**6
                assert isinstance(batch, libshard.ClosedError) if closed else no_room or "still held" in str(batch), batch
                iterator = iter(()) if closed else iter(loader)
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
            iterator = iter(()) if isinstance(iterator, Exception) else iterator
        elif step == "look":
            outcome(loader.stats), outcome(loader.summary), repr(loader), outcome(lambda: loader.indices(0, 0, 7))
        elif step == "gc":
            gc.collect()
        else:
            loader.close()
            closed = True
    for image, index in held:
        assert np.asarray(image).tobytes() == WANT[index]["image"].tobytes()


for test in (index_a_dataset, take_arrays_apart, drive_a_loader):
    test()
assert cases >= CASES * 0.8, cases
print(f"{cases} cases")
