/* SPDX-License-Identifier: Apache-2.0 */
/*
 * converter.h - one input of the plan to one record, or to the reason why not
 */
#ifndef SHARD_CONVERT_CONVERTER_H
#define SHARD_CONVERT_CONVERTER_H

#include <stdbool.h>
#include <stddef.h>

struct budget;
struct plan;
struct quarantine;
struct result;
struct sandbox;
struct shard_schema;
struct source_times;
struct stored;

/* All groups of a record of images. */
size_t converter_record_bytes(const struct shard_schema *s);

/* What one thread needs. */
struct converter;

/*
 * `stored` may be NULL if the plan has no files.  Inputs that are bad are copied to the quarantine,
 * unless that is NULL.  These and the plan must outlive the converter, and so must the budget,
 * which all converters share; a converter that is alone needs no budget.  Pictures are made in the
 * sandbox, unless that is NULL.  NULL when memory ran out.
 */
struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct source_times *times, const struct quarantine *quarantine,
				 struct budget *budget, struct sandbox *sandbox);
void converter_close(struct converter *c);

/* Make the record of the input at r->ordinal, with its fields, in r.  r->record must be set. */
void converter_run(struct converter *c, struct result *r);

/*
 * Only to learn r->undecided: whether it is.  An image that states no orientation is not decoded,
 * unless there is a sandbox.
 */
bool converter_is_undecided(struct converter *c, struct result *r);

#endif
