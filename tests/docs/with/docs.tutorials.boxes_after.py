# SPDX-License-Identifier: Apache-2.0
assert worst <= 0.5 and shown + gone == 2 * len(ds) and gone > 0
assert all((t["boxes"][:, 2:] > t["boxes"][:, :2]).all() for t in targets(batch))
