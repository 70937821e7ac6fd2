/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_parts.h - files of fields, of which some hold the same records: a/x.npy and a/label.npy
 *
 * A field may be in several files, its parts.  Which part of another field has the same records is
 * not told by the order in which files were named, but by a name that both have.
 */
#ifndef SHARD_SOURCES_FIXED_PARTS_H
#define SHARD_SOURCES_FIXED_PARTS_H

#include <stdint.h>

struct request;

struct fixed_part {
	char *name;	 /* what parts that belong together share, such as a folder */
	uint64_t number; /* likewise; 0: it has none */
	char *where;	 /* for messages */
	uint64_t slice;	 /* of the plan */
	uint64_t group;	 /* where its name came first, among all parts */
};

struct fixed_parts { /* start it zeroed */
	struct fixed_part *part;
	uint64_t count, capacity;
};

/* The last slice of the plan is that part, if it is no other one's.  Returns the exit code. */
int fixed_parts_add(struct fixed_parts *p, const struct request *r, const char *name, uint64_t number,
		    const char *where);

/*
 * All files were added: put parts with numbers in their order, and those of other fields beside the
 * ones of the first field that has several.  A field that is one file needs no name; if another has
 * several, a warning says in which order they are taken.  `remedy` ends a refusal: what to call the
 * files.  Returns the exit code.
 */
int fixed_parts_pair(struct fixed_parts *p, const struct request *r, const char *remedy);

void fixed_parts_free(struct fixed_parts *p);

#endif
