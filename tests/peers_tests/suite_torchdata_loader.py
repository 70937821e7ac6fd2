# SPDX-License-Identifier: Apache-2.0
"""torchdata's tests of ends of epochs and of states as JSON, with libshard.torch.Loader for their
StatefulDataLoader."""

import libshard.torch
import packed
import test_state_dict
import torch


class MapDataset(torch.utils.data.Dataset):
    """What a loader is made of: the constructor of their DummyMapDataset, and its length."""

    def __init__(self, size, shuffle, include_generator=True):
        self.packed = packed.samples(size)

    def __len__(self):
        return len(self.packed)


class Loader(libshard.torch.Loader):
    """With their arguments; threads take the place of workers, and nothing persists."""

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, num_workers=0, **_):
        in_order = (test_state_dict.DummySampler, torch.utils.data.SequentialSampler)
        assert sampler is None or isinstance(sampler, (*in_order, torch.utils.data.RandomSampler))
        shuffle = shuffle or isinstance(sampler, torch.utils.data.RandomSampler)
        super().__init__(dataset.packed, batch_size or 1, shuffle=shuffle, threads=num_workers, copy=True)

    def load_state_dict(self, state):
        if not packed.BROKEN:
            super().load_state_dict(state)


test_state_dict.DummyMapDataset = MapDataset
test_state_dict.StatefulDataLoader = Loader

from test_state_dict import *  # noqa: E402, F403
