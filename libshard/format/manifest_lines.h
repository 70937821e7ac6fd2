/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_lines.h - the lines of a manifest behind its head, one function for each kind
 *
 * For manifest_parse.c, which knows the order of the lines.
 */
#ifndef SHARD_DISK_MANIFEST_LINES_H
#define SHARD_DISK_MANIFEST_LINES_H

#include "libshard/format/manifest.h"
#include "libshard/format/tokens.h"

/* The kinds of lines behind the head, in the order that they come in. */
enum line_kind { LINE_GROUP, LINE_FIELD, LINE_CLASS, LINE_STAT, LINE_SHARD, LINE_KINDS };

/* A manifest that is being read. */
struct parse {
	struct manifest *m;
	const struct manifest_sink *sink; /* may be NULL */
	struct shard_error *err;
	uint64_t line; /* number of the current one, from 1 */
	enum line_kind kind;
	uint64_t classes, shards, records; /* so far */
	/* statistics: the block being read */
	uint32_t stat_kind, stat_field;
	uint64_t stat_next, stat_sum;
};

/*
 * Take one line apart, and store its contents in p->m or hand them to the sink.  `t` has the whole
 * line, which keeps M5.
 */
int line_group(struct parse *p, struct tokens *t);
int line_field(struct parse *p, struct tokens *t);
int line_class(struct parse *p, struct tokens *t);
int line_stat(struct parse *p, struct tokens *t);
int line_shard(struct parse *p, struct tokens *t);

/* M6, M7: did all words of the line have their form? */
int line_done(struct parse *p, struct tokens *t);
/* M11: is the block of statistics that was being read complete? */
int line_stats_done(struct parse *p);

#endif
