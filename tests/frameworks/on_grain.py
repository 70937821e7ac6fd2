# SPDX-License-Identifier: Apache-2.0
"""Grain: libshard.grain.IterDataset under a transformation and a prefetch of Grain's own."""

import json

import grain
import numpy as np
from absl import flags
from checks import Wrong
from grain._src.python.testing.experimental import assert_equal_output_after_checkpoint

import libshard.grain

PACKAGES = ("grain",)


def job(run):
    share = {"rank": run.rank // run.peers, "world": run.world // run.peers} if run.peers > 1 else {}
    source = libshard.grain.IterDataset(run.data, run.batch, epochs=run.epochs, **share, **run.order)
    run.length = source.batches
    batches = iter(grain.experimental.ThreadPrefetchIterDataset(source.map(dict), prefetch_buffer_size=3))
    if run.start and not run.forget:
        with open(f"{run.start}.json") as f:
            batches.set_state(json.load(f))
    weights = np.zeros(8, np.float32)
    for batch in batches:
        weights += batch["x"].mean(0)
        run.got(batch)
        if run.is_over:
            if run.rank == 0:
                with open(f"{run.save}.json", "w") as f:
                    json.dump(batches.get_state(), f)
            return


def every_state():
    """Grain's own test: from the state before each batch, an iterator gives all that are left."""
    assert_equal_output_after_checkpoint(libshard.grain.IterDataset("train", 30, epochs=2, seed=1))


def source():
    """Records by number, in Grain's order and back."""
    dataset = grain.MapDataset.source(libshard.open("train")).shuffle(seed=1).map(lambda record: record["id"])
    assert sorted(dataset) == list(range(100)) != list(dataset)
    assert_equal_output_after_checkpoint(dataset.to_iter_dataset())


def workers():
    """Each of several processes would deliver every record."""
    flags.FLAGS.mark_as_parsed()
    batches = libshard.grain.IterDataset("train", 30, epochs=1)
    try:
        list(batches.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=2)))
    except ValueError as e:
        if "Cannot slice" not in str(e):
            raise Wrong(e) from e
        return
    raise Wrong("two processes delivered every record")


FEATURES = {
    "`assert_equal_output_after_checkpoint(IterDataset(...))`": every_state,
    "`MapDataset.source(libshard.open(...))`, with states": source,
    "`IterDataset(...).mp_prefetch()` raises": workers,
}
