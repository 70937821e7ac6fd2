# SPDX-License-Identifier: Apache-2.0
"""gpu_torch.py BATCH BYTES [FILE OFFSET COUNT]... - an epoch of records to the GPU by torch's
DataLoader(pin_memory=True)

What everybody has: a map-style dataset that copies a record out of a map, worker processes that put
batches together, a thread that copies them to page-locked memory, and `.to("cuda",
non_blocking=True)`.  Prints GB/s of the second epoch, for which workers and memory are there, and
the number of workers.  Where there is no PyTorch or no GPU: the reason, and exit status 77.
TORCH_DEVICE=cpu leaves the GPU out, to try this program where none is.
"""

import os
import sys
import time

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError as e:
    print(f"{sys.executable} has no PyTorch: {e}")
    sys.exit(77)

DEVICE = os.environ.get("TORCH_DEVICE", "cuda")
WORKERS = min(16, len(os.sched_getaffinity(0)))


class Records(Dataset):
    def __init__(self, record_bytes, files):
        self.maps = [
            torch.from_file(path, False, offset + count * record_bytes, dtype=torch.uint8)[offset:].view(
                count, record_bytes
            )
            for path, offset, count in files
        ]
        self.place = [(m, i) for m, records in enumerate(self.maps) for i in range(len(records))]

    def __len__(self):
        return len(self.place)

    def __getitem__(self, i):
        which, inside = self.place[i]
        return self.maps[which][inside].clone()


def epoch(loader, want):
    begin, seen = time.perf_counter(), 0
    for batch in loader:
        on_gpu = batch.to(DEVICE, non_blocking=True)
        seen += on_gpu.numel()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    if seen != want:
        sys.exit(f"the epoch had {seen} of {want} bytes")
    return seen / (time.perf_counter() - begin) / 1e9


def main():
    batch, record_bytes = int(sys.argv[1]), int(sys.argv[2])
    files = [(path, int(offset), int(count)) for path, offset, count in zip(*[iter(sys.argv[3:])] * 3)]
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} of {sys.executable} finds no GPU")
        sys.exit(77)
    dataset = Records(record_bytes, files)
    loader = DataLoader(
        dataset, batch, shuffle=True, num_workers=WORKERS, persistent_workers=True, pin_memory=DEVICE == "cuda"
    )
    epoch(loader, len(dataset) * record_bytes)
    print(f"{epoch(loader, len(dataset) * record_bytes):.4f} {WORKERS}")


if __name__ == "__main__":
    main()
