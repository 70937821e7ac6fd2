# SPDX-License-Identifier: Apache-2.0
"""A batch sampler as Megatron's trainers use them, in libshard's order.

They save one number, the records that all ranks have consumed, and make a new sampler from it.
"""

import importlib.util
import sys
import types
from unittest import mock

import libshard


class Sampler:
    def __init__(self, dataset, consumed_samples, micro_batch_size, data_parallel_rank, data_parallel_size,
                 shuffle=True):  # fmt: skip
        self.consumed_samples = consumed_samples
        self.size, self.step_size = micro_batch_size, micro_batch_size * data_parallel_size
        self.order = libshard.Loader(
            dataset, micro_batch_size, rank=data_parallel_rank, world=data_parallel_size, shuffle=shuffle, tail="drop"
        )

    def __iter__(self):
        """What is left of an epoch, or a whole one."""
        epoch, done = divmod(self.consumed_samples // self.step_size, len(self.order))
        for step in range(done, len(self.order)):
            self.consumed_samples += self.step_size
            yield list(self.order.indices(epoch, step * self.size, self.size))


def load(path):
    """The sampler of a checkout, by its file alone: the package around it wants much more."""
    utils = types.ModuleType("swift.utils")
    utils.get_logger = mock.Mock()
    with mock.patch.dict(sys.modules, {"swift": types.ModuleType("swift"), "swift.utils": utils}):
        spec = importlib.util.spec_from_file_location("samplers_of_checkout", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.MegatronPretrainingRandomSampler


def epochs(sampler, steps):
    """So many batches of a sampler that is begun again whenever it ends, as trainers do."""
    out = []
    while len(out) < steps:
        before = len(out)
        for batch in sampler:
            out.append([int(i) for i in batch])
            if len(out) == steps:
                break
        assert len(out) > before, "an epoch without a batch"
    return out
