/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.h - the fields of a record beside its image
 *
 * Values stand in the plan and were checked when it was made.  Files and members are checked here:
 * a bad one makes its sample bad input, as a bad image does.
 */
#ifndef SHARD_CONVERT_RECORD_FIELDS_H
#define SHARD_CONVERT_RECORD_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

struct pictures;
struct plan;
struct quarantine;
struct result;
struct shard_schema;
struct source_times;
struct stored;

/* The image of a record, which its masks and boxes must follow. */
struct record_image {
	uint32_t width, height; /* before the resize, upright */
	uint32_t orientation;	/* of its file */
	uint32_t stated;	/* by its file, and not applied; or 0 */
	bool is_held;		/* its file is large, and still in memory: what it took of the budget stays taken */
};

/* What one thread needs. */
struct record_fields;

/* These must outlive it; `stored` is NULL if the plan has no files.  NULL when memory ran out. */
struct record_fields *record_fields_open(const struct plan *plan, const struct shard_schema *schema, int source_fd,
					 const struct stored *stored, const struct source_times *times,
					 struct pictures *pictures);
void record_fields_close(struct record_fields *f);

/*
 * Write all fields but the image into the record.  False if the verdict of the result says why not.
 */
bool record_fields_put(struct record_fields *f, const struct record_image *image, struct result *r);

/* Keep the files and members of a bad input.  False if the verdict of the result says why not. */
bool record_fields_keep(struct record_fields *f, const struct quarantine *q, struct result *r);

/* Give back the memory that a large input needed. */
void record_fields_shrink(struct record_fields *f);

#endif
