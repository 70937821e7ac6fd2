/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_slice.h - a line "slice ..." of a plan, believing nothing
 */
#ifndef SHARD_PLAN_PLAN_SLICE_H
#define SHARD_PLAN_PLAN_SLICE_H

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct plan_slice;
struct plan_tokens;

/* NULL, or what is wrong with the line.  The files and fields of the plan are there already. */
const char *plan_slice_read(const struct plan *plan, const struct plan_tokens *l, struct plan_slice *s);

/* A dtype as in a file, '>' before it for the other byte order.  False if the token is none. */
bool plan_dtype_at(const struct plan_tokens *l, unsigned token, uint8_t *out, uint8_t *swap);

#endif
