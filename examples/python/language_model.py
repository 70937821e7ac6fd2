# SPDX-License-Identifier: Apache-2.0
"""A small GPT, trained on a stream of tokens as nanoGPT and llm.c keep it: a .bin file of 16-bit
numbers.

    wide='import sys, array; array.array("H", [*sys.stdin.buffer.read()]).tofile(sys.stdout.buffer)'
    cat README.md format/*.md docs/MIGRATING.md | python -c "$wide" >train.bin
    cat CONTRIBUTING.md docs/ARCHITECTURE.md | python -c "$wide" >val.bin
    shardpack tokens train.bin -o ds/tokens --seq-len 64
    shardpack tokens val.bin -o ds/tokens-val --seq-len 64
    python examples/python/language_model.py ds/tokens ds/tokens-val

A record is a window of --seq-len tokens and the one after them; each token of the stream is learnt
once in an epoch.  Here the tokens are bytes of our own documents.  Ten seconds of one core teach it
to guess the next byte with a loss below nine tenths of what the best model has that ignores
context; for files of nanoGPT say --vocabulary 50257.

It also takes records of several documents, as `shardpack tokens --documents ID --pack` makes them.
Then no token sees another document, and the loss is that of each document alone.
"""

import argparse

import libshard.torch
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Attention to what came before, then a layer for each token alone."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """From tokens [N, L] to scores of what comes after each, [N, L, vocabulary]."""

    def __init__(self, vocabulary, length, width=64, heads=4, layers=2):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for embedding in (self.token, self.place):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens, document=None, place=None):
        """Of packed records also the document of each token and its place there, both [N, L]."""
        length, mask = tokens.shape[1], None
        x = self.token(tokens) + (self.place.weight[:length] if place is None else self.place(place))
        if document is not None:
            causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
            mask = (causal & (document[:, :, None] == document[:, None, :]))[:, None]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def documents_of(batch):
    """Of packed records, for each token: its document, its place there, and whether it is real.

    What lies behind the last document is a document of its own.
    """
    ends = batch["doc_lengths"].long().cumsum(1)  # behind the last document: again its end
    at = torch.arange(batch["tokens"].shape[1], device=ends.device).expand(len(ends), -1).contiguous()
    document = torch.searchsorted(ends, at, right=True)
    return document, at - F.pad(ends, (1, 0)).gather(1, document), at < ends[:, -1:]


def scores_and_targets(model, batch):
    """Scores [N, L, vocabulary], and next tokens [N, L]: -100 where there is nothing to guess."""
    tokens, packed = batch["tokens"], ()
    targets = tokens[:, 1:]
    if "doc_lengths" in batch:
        document, place, real = documents_of(batch)
        packed = document[:, :-1], place[:, :-1]
        targets = targets.masked_fill((document[:, 1:] != document[:, :-1]) | ~real[:, 1:], -100)
    return model(tokens[:, :-1], *packed), targets


def loss_of(model, batch):
    """Mean over all tokens but the first of each record, or of each document, in nats."""
    scores, targets = scores_and_targets(model, batch)
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


@torch.no_grad()
def evaluate(model, loader, vocabulary):
    """Loss, and the least one of a model that knows nothing but how frequent each token is."""
    counts, total = torch.zeros(vocabulary, dtype=torch.int64), 0.0
    for batch in loader:
        scores, targets = scores_and_targets(model, batch)
        counts += torch.bincount(targets[targets >= 0], minlength=vocabulary)
        total += F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum").item()
    share = counts[counts > 0] / counts.sum()
    return total / counts.sum().item(), -(share * share.log()).sum().item()


def endless(loader):
    """Epoch after epoch."""
    while True:
        yield from loader


def main(argv=None):
    parser = argparse.ArgumentParser(description="Train a small GPT on packed tokens.")
    parser.add_argument("train", help="dataset made by shardpack tokens")
    parser.add_argument("val", help="the same, of other text")
    parser.add_argument("--vocabulary", type=int, default=256, metavar="TOKENS", help="[%(default)s]")
    parser.add_argument("--steps", type=int, default=300, help="[%(default)s]")
    parser.add_argument("--batch-size", type=int, default=16, help="[%(default)s]")
    parser.add_argument("--lr", type=float, default=6e-3, help="at its highest [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of weights and order [%(default)s]")
    args = parser.parse_args(argv)

    torch.manual_seed(args.seed)
    train = libshard.torch.Loader(args.train, args.batch_size, seed=args.seed, drop_last=True)
    val = libshard.torch.Loader(args.val, args.batch_size, shuffle=False)
    model = GPT(args.vocabulary, train.dataset.schema["tokens"].shape[0] - 1)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps)

    for step, batch in zip(range(args.steps), endless(train)):
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} epoch {batch.epoch} loss {loss.item():.3f}", flush=True)
    loss, least = evaluate(model, val, args.vocabulary)
    print(f"val loss {loss:.4f}; of a model that ignores context at least {least:.4f}")


if __name__ == "__main__":
    main()
