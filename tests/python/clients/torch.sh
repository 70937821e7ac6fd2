#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/torch.sh - libshard.torch: tensors, whose memory they are, and an ordinary
# DataLoader around a dataset
# TIMEOUT: 900
. "${0%/*}/lib.sh"
python -W error "$ROOT/tests/python/clients/torch_.py"
