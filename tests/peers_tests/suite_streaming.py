# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming's tests of partitions, answered from the order of libshard's loaders."""

import functools
import sys
import types

import libshard
import numpy as np
import packed
import pytest


def open_loader(count, size, rank=0, world=1):
    seed = 3 + (world if packed.BROKEN else 0)
    return libshard.Loader(packed.numbers(count), size, seed=seed, rank=rank, world=world, tail="pad")


@functools.cache
def epoch(count):
    """The order of an epoch, as one rank would see it."""
    with open_loader(count, 1) as loader:
        return np.array(loader.indices(0, 0, count))


def places(steps, size, world, position=0):
    """[rank, step, row]: ranks take turns, so that each has the positions that are its rank modulo
    the world."""
    turns = np.arange(steps * size * world).reshape(steps, size, world).transpose(2, 0, 1)
    return position + np.roll(turns, position % world, axis=0)


@functools.cache
def shares(count, size, world):
    """[rank, step, row]: records, -1 for rows that pad the last step."""
    steps = -(-count // (size * world))
    out = np.full((world, steps, size), -1, np.int64)
    for rank in range(world):
        with open_loader(count, size, rank, world) as loader:
            rows = np.array(loader.indices(0, 0, steps * size)).reshape(steps, size)
        out[rank] = np.where(places(steps, size, world)[rank] < count, rows, -1)
    return out


def resumed(count, size, world, position):
    """The same behind a state that a job of one rank left at this position.

    A loader is asked in two ranks; the others follow from the rule that ranks take turns.
    """
    steps = max(0, -(-(count - position) // (size * world)))
    place = places(steps, size, world, position)
    out = np.where(place < count, epoch(count)[np.minimum(place, count - 1)], -1)
    for rank in {0, world - 1} if steps else ():
        check_first(out[rank][0], count, size, rank, world, position)
    return out


@functools.cache
def state_at(count, position):
    with open_loader(count, position) as loader:
        loop = iter(loader)  # held, so the state is within the epoch
        next(loop)
        return loader.state_dict()


def check_first(want, count, size, rank, world, position):
    with open_loader(count, size, rank, world) as loader:
        loader.load_state_dict(state_at(count, position))
        batch = next(iter(loader))
        came = np.where(np.array(batch.flags) & libshard.PADDED, -1, np.array(batch["number"]))
    assert came.tolist() == want.tolist(), (count, size, rank, world, position)


def get_partitions(algo, num_samples, num_canonical_nodes, num_physical_nodes, ranks_per_node, workers_per_rank,
                   batch_size, drop_first=0, initial_physical_nodes=None):  # fmt: skip
    """[node, rank, worker, batch, row]; workers take the steps of their rank in turns."""
    packed.used()
    world = num_physical_nodes * ranks_per_node
    done = min(drop_first, num_samples)
    by_rank = resumed(num_samples, batch_size, world, done) if done else shares(num_samples, batch_size, world)
    batches = -(-by_rank.shape[1] // workers_per_rank)
    out = np.full((world, batches * workers_per_rank, batch_size), -1, np.int64)
    out[:, : by_rank.shape[1]] = by_rank
    out = out.reshape(world, batches, workers_per_rank, batch_size).transpose(0, 2, 1, 3)
    return out.reshape(num_physical_nodes, ranks_per_node, workers_per_rank, batches, batch_size)


sys.modules["streaming.base.partition"] = types.ModuleType("streaming.base.partition")
sys.modules["streaming.base.partition"].get_partitions = get_partitions

from test_partition import *  # noqa: E402, F403


@pytest.mark.parametrize("nodes", [n for n in range(1, 121) if 120 % n == 0])
def test_libshard_any_number_of_nodes(nodes):
    """Ours, for their relaxed_resumption, which also wants some numbers of nodes to be refused."""
    want, came = (
        get_partitions("", 10000, n, n, 8, 8, 960 // (8 * n)).transpose(3, 2, 0, 1, 4).reshape(-1, 960)
        for n in (15, nodes)
    )
    steps = -(-10000 // 960)
    assert np.sort(came[:steps]).tolist() == np.sort(want[:steps]).tolist()
