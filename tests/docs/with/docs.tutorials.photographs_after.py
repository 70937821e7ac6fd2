# SPDX-License-Identifier: Apache-2.0
assert count_right() >= 30, count_right()
assert train.epoch == 8
