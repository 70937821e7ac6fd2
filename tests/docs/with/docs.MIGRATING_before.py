# SPDX-License-Identifier: Apache-2.0
"""docs.MIGRATING_before.py - what a reader of the page has: PyTorch, and a dataset of their own

Without PyTorch, only the blocks run that do not need it.
"""

import importlib.util

if importlib.util.find_spec("torch"):
    import torch

    class MyDataset(torch.utils.data.Dataset):
        def __len__(self):
            return 70

        def __getitem__(self, i):
            i = range(len(self))[i]  # or IndexError
            return torch.full((224, 224, 3), i, dtype=torch.uint8), i % 2
