/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformed.h - batches whose images are transformed on their way, by the threads that fill them
 *
 * A thread brings some records to memory of its own, as it would to a slot.  Then it transforms
 * their images to the rows of the slot, and copies their other fields.
 */
#ifndef SHARD_FEED_TRANSFORMED_H
#define SHARD_FEED_TRANSFORMED_H

#include "libshard/feed/block.h"
#include "libshard/transform/transform.h"

struct transformed { /* const once it is open */
	struct transform_plan plan;
	uint32_t field, views; /* of each image, one behind the other in a row */
	uint64_t row_bytes;    /* of the results in a row */
	bool has_kernel;       /* it transforms the images, and a feed does the rest */
	/* Bytes of a row of what a feed transforms: images, masks and boxes; 0: other fields. */
	uint64_t remade[SHARD_FIELDS_MAX];
	struct layout records; /* of `rows` records on their way */
	uint32_t rows;
};

/*
 * Find what a feed has to transform: the images, unless there is a kernel, and wanted fields with
 * masks or boxes.  plan, field, views and has_kernel are set.  Fails with ARGUMENT if a field
 * cannot follow, or if it might belong to the pixels and the options do not say that it stays as it
 * is stored.
 */
int transformed_find_fields(struct transformed *t, const struct shard_schema *schema, uint32_t fields,
			    const struct shard_loader_transform *o, struct shard_error *err);
/* Is there anything for a feed to transform? */
bool transformed_has_work(const struct transformed *t);
/* Lay out the memory of records on their way.  The rest is set.  false: it is too large. */
bool transformed_lay_out(struct transformed *t, const struct shard_schema *schema, uint32_t fields, uint32_t uneven);

/* Open the memory that a thread brings records to.  Returns false if there is none. */
bool transformed_open_scratch(const struct transformed *t, struct scratch *scratch);
void transformed_close_scratch(const struct transformed *t, struct scratch *scratch, bool inherited);

/*
 * Fill a slot, whose layout is `to`, and repair its rows.  Its images are transformed, unless `t`
 * is NULL.
 */
int transformed_fill(const struct transformed *t, struct supply *supply, struct scratch *scratch, struct slot *s,
		     const struct layout *to, struct fill_counts *counts, struct shard_error *err);

/* What chance says of each view of each row of a batch: [record_count x views]. */
void transformed_draw_batch(const struct transformed *t, const struct shard_batch *batch,
			    struct shard_transform_row *row);

#endif
