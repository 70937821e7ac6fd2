# SPDX-License-Identifier: Apache-2.0
"""JAX in short: a small network on photographs.

    shardpack images examples/photos/train -o ds/train --resize 72 --crop 64
    shardpack images examples/photos/val -o ds/val --resize 72 --crop 64 --classes ds/train
    python examples/python/jax_short.py ds/train ds/val

Batches are arrays of JAX, which look into the loader's memory.  For several devices give the loader
a sharding=.
"""

import argparse

import jax
import jax.numpy as jnp
import libshard.jax


def initial(key, class_count):
    shapes = {"conv1": (5, 5, 3, 16), "conv2": (3, 3, 16, 32), "conv3": (3, 3, 32, 64), "linear": (64, class_count)}
    draw = jax.nn.initializers.he_normal()
    return {name: draw(k, shapes[name]) for name, k in zip(shapes, jax.random.split(key, len(shapes)))}


def scores(weights, image):
    x = image / 127.5 - 1
    for name in ("conv1", "conv2", "conv3"):
        x = jax.lax.conv_general_dilated(x, weights[name], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x)
    return x.mean((1, 2)) @ weights["linear"]


def loss_of(weights, image, label):
    return -jax.nn.log_softmax(scores(weights, image))[jnp.arange(len(label)), label].mean()


@jax.jit
def step(weights, momentum, image, label):
    loss, gradient = jax.value_and_grad(loss_of)(weights, image, label)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    weights = jax.tree.map(lambda w, m: w - 0.02 * m, weights, momentum)
    return weights, momentum, loss


@jax.jit
def right(weights, image, label):
    return (scores(weights, image).argmax(-1) == label).sum()


def main(argv=None):
    parser = argparse.ArgumentParser(description="Train a classifier of photographs with JAX.")
    parser.add_argument("train", help="packed dataset with fields image and label")
    parser.add_argument("val", help="the same, to measure accuracy on")
    parser.add_argument("--epochs", type=int, default=40, help="[%(default)s]")
    parser.add_argument("--batch-size", type=int, default=12, help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of weights and order [%(default)s]")
    args = parser.parse_args(argv)

    train = libshard.jax.Loader(args.train, args.batch_size, seed=args.seed, drop_last=True)  # one shape: compiled once
    val = libshard.jax.Loader(args.val, args.batch_size, shuffle=False)
    weights = initial(jax.random.key(args.seed), len(train.dataset.classes))
    momentum = jax.tree.map(jnp.zeros_like, weights)
    for epoch in range(args.epochs):
        for batch in train:
            weights, momentum, loss = step(weights, momentum, batch["image"], batch["label"])
        print(f"epoch {epoch} loss {loss:.4f}", flush=True)
    share = sum(int(right(weights, batch["image"], batch["label"])) for batch in val) / len(val.dataset)
    print(f"val accuracy {share:.3f}")


if __name__ == "__main__":
    main()
