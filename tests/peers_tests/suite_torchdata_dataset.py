# SPDX-License-Identifier: Apache-2.0
"""torchdata's tests of StatefulDataLoader, whose map dataset is a ShardDataset."""

import itertools

import libshard.torch
import packed
import test_state_dict
import torch

_calls = itertools.count()


class MapDataset(libshard.torch.ShardDataset):
    """As their DummyMapDataset: with ``shuffle`` it draws a sample, and the generator is state."""

    def __init__(self, size, shuffle, include_generator=True):
        super().__init__(packed.samples(size))
        self.shuffle, self.include_generator = shuffle, include_generator

    def __getitems__(self, numbers):
        if self.shuffle:
            numbers = [torch.randint(len(self), (1,)).item() for _ in numbers]
        if packed.BROKEN:
            numbers = [(i + next(_calls) // 7) % len(self) for i in numbers]
        return super().__getitems__(numbers)

    def state_dict(self):
        return {"g": torch.get_rng_state()} if self.include_generator else {}

    def load_state_dict(self, state):
        if self.include_generator:
            torch.set_rng_state(state["g"])


test_state_dict.DummyMapDataset = MapDataset

from test_state_dict import *  # noqa: E402, F403
