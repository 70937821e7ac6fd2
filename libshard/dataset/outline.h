/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline.h - what a shard says of itself, without its records: read, and not mapped
 */
#ifndef SHARD_READ_OUTLINE_H
#define SHARD_READ_OUTLINE_H

#include "libshard/format/pages.h"
#include "shard_pack.h"

/* Larger statistics, of thousands of classes, are read when needed: many outlines are kept. */
#define OUTLINE_STAT_BYTES 16384

struct shard_outline { /* const after open, but for statistics that are read later */
	char *path;
	uint64_t file_bytes;
	const struct section *stat; /* NULL: it has no statistics */
	uint8_t *stat_bytes;	    /* checked; NULL until outline_need_stat() if they are large */
	struct pages pages;
};

/* I1 to I42 of an open file of so many bytes. */
int outline_read_pages(struct pages *pages, int fd, uint64_t file_bytes, const char *path, struct shard_error *err);

/* `schema` is that of the pages, wherever it is kept. */
void outline_info(const struct pages *p, const struct shard_schema *schema, struct shard_info *out);

/* I43 of a section whose bytes hash to that. */
int outline_check_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err);

/* Read and check statistics that were not yet (I43, I53, I54). */
int outline_need_stat(struct shard_outline *o, struct shard_error *err);

/* The statistics of a field, `kind` of enum shard_stat: its items, and how many; NULL if none. */
const uint8_t *outline_stat(const struct shard_outline *o, uint32_t kind, uint32_t field, uint64_t *items);

#endif
