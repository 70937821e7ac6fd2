/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gallery.h - small pictures of some records, for a page
 *
 * The first records of each class; or, where records have no label, some from all over the dataset.
 */
#ifndef SHARD_REPORT_GALLERY_H
#define SHARD_REPORT_GALLERY_H

#include <stdint.h>
#include <stdio.h>

#include "shard.h"
#include "shard_pack.h"

#define GALLERY_PICTURES 60
#define GALLERY_SIDE	 64

struct gallery {
	struct shard_dataset *ds;
	const struct shard_field *image, *label; /* NULL: none */
	uint64_t record_count;
	uint64_t a_class, sample_count; /* pictures of each class, or of all; both 0 if there is no image */
	uint64_t left_bytes;
	uint64_t record[GALLERY_PICTURES]; /* a_class of each class shown, UINT64_MAX: none found; or the sample */
	void *group[SHARD_GROUPS_MAX];	   /* of a record: those that the image needs */
	uint8_t small[GALLERY_SIDE * GALLERY_SIDE * 3];
};

/* Say why not, and return the exit code; close it all the same. */
int gallery_open(struct gallery *g, struct shard_dataset *ds, uint64_t class_count);
void gallery_close(struct gallery *g);

/* The pictures of a class, or all of the sample, as <img> with their pixels. */
int gallery_put_class(struct gallery *g, FILE *out, uint64_t class_idx);
int gallery_put_sample(struct gallery *g, FILE *out);

#endif
