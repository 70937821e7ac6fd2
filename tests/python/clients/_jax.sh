#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_jax.sh - libshard.jax; by hand, with `make check-clients`
CLIENT=jax
. "${0%/*}/lib.sh"
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=2 python "$ROOT/tests/python/clients/jax_.py"
