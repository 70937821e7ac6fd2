/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where the inputs are: one folder, and paths below it
 *
 * A plan names inputs relative to this folder, so that it means the same on any machine.  The
 * folder is the one that --root names.  Without --root it is SRC, if that is a folder, else the
 * folder that holds everything that was named.
 */
#ifndef SHARD_INPUT_PLACE_H
#define SHARD_INPUT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

struct source_item {
	char *path; /* relative to the root; "" is the root itself */
	bool is_dir;
};

struct source_place {	     /* start it zeroed, with root_fd -1 */
	char *root;	     /* for messages: as it was typed, where that is possible */
	char *root_absolute; /* for `shardpack build` */
	int root_fd;
	struct source_item *item; /* in the order given; a pattern's in byte order */
	uint64_t item_count, item_capacity;
};

/*
 * Take what was named: files, folders, patterns that match some, and "-" for a list of these on
 * standard input, one a line.  `root` is NULL or what --root says.  Returns the exit code.
 */
int place_open(struct source_place *p, const char *const *named, size_t named_count, const char *root);

/*
 * Look at a file, folder or link target below the root.  *there is false only if nothing has that
 * name.  A link that leads nowhere is EXIT_IO, and so is every other error.  Callers must not
 * ignore such a name: it may be a folder of images.
 */
int place_look(const struct source_place *p, const char *path, struct stat *st, bool *there);

/* The same of an entry of a folder that was listed: if it is gone now, that is EXIT_IO too. */
int place_look_at_entry(const struct source_place *p, const char *path, struct stat *st);

/* Only the folder, for callers that have a plan already. */
int place_open_root(struct source_place *p, const char *root);

void place_close(struct source_place *p);

#endif
