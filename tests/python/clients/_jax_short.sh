#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_jax_short.sh - examples/python/jax_short.py learns; by hand, with
# `make check-clients`
CLIENT=jax
. "${0%/*}/lib.sh"
JAX_PLATFORMS=cpu python -W error "$ROOT/tests/python/clients/jax_short_.py"
