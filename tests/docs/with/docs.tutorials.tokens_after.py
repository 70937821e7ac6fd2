# SPDX-License-Identifier: Apache-2.0
assert reached < 0.9 * least, (reached, least)
# Other documents of a record, and later tokens, change nothing.
one = next(iter(libshard.torch.Loader("tokens/val", batch_size=16, seed=2)))
tokens, place = one["tokens"], one["position_ids"].long()
document = (place == 0).cumsum(1)
row = int((document == 2).any(1).nonzero()[0])
begin = int((document[row] == 2).nonzero()[0])
changed = tokens.clone()
changed[row, :begin] = 65
with torch.no_grad():
    before, after = (model(t[:, :-1], document[:, :-1], place[:, :-1]) for t in (tokens, changed))
assert begin > 0 and torch.allclose(before[row, begin:], after[row, begin:], atol=1e-4)
assert not torch.allclose(before[row, :begin], after[row, :begin], atol=1e-4)
