# SPDX-License-Identifier: Apache-2.0
"""Without libshard: Trainer finds its place by steps alone, so a larger batch loses records.

Exit status 0 if it is so.
"""

import sys

import torch
from transformers import Trainer, TrainingArguments

N, STOP = 96, 11  # 8 steps of 12 are an epoch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.seen = torch.nn.Parameter(torch.zeros(())), []

    def forward(self, number):
        self.seen.append(sorted(number.tolist()))
        return {"loss": self.weight * number.float().mean()}


def train(batch, start=None, **more):
    model = Model()
    arguments = TrainingArguments(output_dir="limit", use_cpu=True, per_device_train_batch_size=batch, report_to=[],
                                  num_train_epochs=2, disable_tqdm=True, logging_strategy="no", **more)  # fmt: skip
    Trainer(model, arguments, train_dataset=[{"number": i} for i in range(N)]).train(resume_from_checkpoint=start)
    return model.seen


def main():
    whole = train(12, save_strategy="no")
    rest = sorted(n for step in whole[STOP:] for n in step)
    train(12, save_strategy="steps", save_steps=STOP, max_steps=STOP)
    same = sorted(n for step in train(12, f"limit/checkpoint-{STOP}", save_strategy="no") for n in step)
    other = sorted(n for step in train(18, f"limit/checkpoint-{STOP}", save_strategy="no") for n in step)
    print(f"of {len(rest)} records that are left, Trainer goes on with {len(same)} in steps of 12, and with "
          f"{len(other)} in steps of 18")  # fmt: skip
    return 0 if same == rest != other else 1


if __name__ == "__main__":
    sys.exit(main())
