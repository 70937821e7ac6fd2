/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_slice.h - a line "slice ..." of a plan, believing nothing
 */
#ifndef SHARD_PLAN_PLAN_SLICE_H
#define SHARD_PLAN_PLAN_SLICE_H

#include <stdbool.h>
#include <stdint.h>

struct words;
struct plan;
struct plan_slice;

/* NULL, or what is wrong with what is behind "slice".  The files and fields of the plan are there already. */
const char *plan_slice_read(const struct plan *plan, struct words *l, struct plan_slice *s);

/* A dtype as in a file, '>' before it for the other byte order.  False if the next word is not one. */
bool plan_take_dtype(struct words *l, uint8_t *out, uint8_t *swap);

#endif
