/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_records.h - windows of packed documents, from where their pieces lie
 */
#ifndef SHARD_CONVERT_PACKED_RECORDS_H
#define SHARD_CONVERT_PACKED_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct shard_schema;
struct stored;
struct verdict;

/* What one thread needs. */
struct packed;

/* Of a plan with plan->pack.  NULL when memory ran out. */
struct packed *packed_open(const struct plan *plan, const struct shard_schema *schema, const struct stored *stored);
void packed_close(struct packed *p);

/*
 * Fill the records of windows; `group` is where the first of them begins in each group, and the
 * others follow.  False if `v` says why not.
 */
bool packed_fill(struct packed *p, const uint64_t *window, uint64_t count, uint8_t *const *group, struct verdict *v);

#endif
