# SPDX-License-Identifier: Apache-2.0
"""JAX: processes that jax.distributed knows, computations under jit, and JSON for a checkpoint."""

import json
import os

from checks import BATCH, WORLD, compare
from launch import launch

PACKAGES = ("jax", "jaxlib")


def _start(run):
    import jax  # not before the fork: it starts threads

    jax.config.update("jax_platforms", "cpu")
    jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", run.world, run.rank)
    return jax


def job(run):
    jax = _start(run)
    import libshard.jax

    assert jax.process_count() == run.world
    share = {"rank": run.rank // run.peers, "world": run.world // run.peers} if run.peers > 1 else {}
    loader = libshard.jax.Loader(run.data, run.batch, **share, **run.order)
    run.length = len(loader)
    if run.start and not run.forget:
        with open(f"{run.start}.json") as f:
            loader.load_state_dict(json.load(f))
    step = jax.jit(lambda weights, x: weights + x.mean(0))
    weights = jax.numpy.zeros(8)
    while loader.epoch < run.epochs:
        for batch in loader:
            weights = step(weights, batch["x"])
            run.got(batch)
            if run.is_over:
                if run.rank == 0:
                    with open(f"{run.save}.json", "w") as f:
                        json.dump(loader.state_dict(), f)
                return


def _pytree(run):
    jax = _start(run)
    import libshard.jax

    for batch in libshard.jax.Loader(run.data, run.batch, seed=1):
        other = jax.tree.map(lambda x: x, jax.device_put(batch, jax.local_devices()[0]))
        assert jax.jit(lambda b: b["id"].sum() + b["index"].sum())(batch) == 2 * sum(other["id"].tolist())
        run.got(other)


def pytree():
    compare(launch(_pytree, WORLD), BATCH, epochs=1)


def _sharded(run):
    jax = _start(run)
    import libshard.jax

    mesh = jax.sharding.Mesh(jax.devices(), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    for batch in libshard.jax.Loader(run.data, run.batch, seed=1, sharding=sharding):
        assert batch["id"].shape == (run.batch * run.world,), batch["id"].shape
        parts = {name: batch[name].addressable_data(0) for name in ("id", "index", "valid")}
        run.got(parts)


def sharded():
    """An array of the whole step, of which each process holds its own rows."""
    compare(launch(_sharded, WORLD), BATCH, epochs=1)


FEATURES = {
    "a batch is a pytree: `jit(f)(batch)`, `tree.map`, `device_put`": pytree,
    "`sharding=` spreads a batch over the devices of two processes": sharded,
}
