/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where the inputs are: one folder, and paths below it
 *
 * A plan names inputs relative to this folder, so that it means the same on any machine.  The
 * folder is the one that --root names.  Without --root it is SRC, if that is a folder, else the
 * folder that holds everything that was named.  A file .json may lie elsewhere, as that of COCO
 * does: then it is the lowest folder above both.
 */
#ifndef SHARD_SHARDPACK_INPUT_PLACE_H
#define SHARD_SHARDPACK_INPUT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/text.h"

struct bad_input;
struct stat;

struct source_item {
	char *path;	      /* relative to the root, in texts of the place; "" is the root itself */
	bool is_dir, missing; /* missing: a list names it, and there is no such file */
};

struct source_place {	     /* start it zeroed, with root_fd -1, and a shelf for paths if there is one */
	char *root;	     /* for messages: as it was typed, where that is possible */
	char *root_absolute; /* for `shardpack build` */
	char *below;	     /* where --root lies below the root; "", unless items lie elsewhere */
	int root_fd;
	struct source_item *item; /* in the order given; a pattern's in byte order */
	uint64_t item_count, item_capacity;
	struct text paths; /* NUL-terminated, one behind the other; its shelf has the items, too */
};

/*
 * Take what was named: files, folders, patterns that match some, and "-" for a list of these on
 * standard input, one a line.  `root` is NULL or what --root says.  Returns the exit code.
 */
int place_open(struct source_place *p, const char *const *named, size_t named_count, const char *root);

/*
 * Look at a file, folder or link target below the root.  *there is false only if nothing has that
 * name.  A link that leads nowhere is bad input, which `bad` says.  It is EXIT_IO if `bad` is NULL,
 * and so is every other error.  Callers must not ignore such a name: it may be a folder of images.
 */
int place_look(const struct source_place *p, const char *path, struct stat *st, bool *there, struct bad_input *bad);

/* The same of an entry of a folder that was listed: if it is gone now, that is like such a link. */
int place_look_at_entry(const struct source_place *p, const char *path, struct stat *st, struct bad_input *bad);

/* Only the folder, for callers that have a plan already. */
int place_open_root(struct source_place *p, const char *root);

void place_close(struct source_place *p);

#endif
