#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_jax_pages.sh - pages that need JAX; by hand, with `make check-clients`
# TIMEOUT: 900
CLIENT=jax exec "${0%/*}/pages.sh"
