/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - the label of an image, by --labels, --label-regex or its folder, or none by --no-label
 */
#ifndef SHARD_SCAN_LABELS_H
#define SHARD_SCAN_LABELS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"

struct bad_input;
struct image_list;
struct request;

struct labels { /* start it zeroed */
	bool has_regex, has_list, none;
	regex_t regex;
	const char *regex_text;
	const char *path_suffix; /* of the list's paths */
	const char *list_name;
	struct text text;
	struct labels_entry {
		uint64_t path_at, label_at; /* in text */
		uint64_t line;
		bool used;
	} * entry; /* by path */
	uint64_t count, capacity;
};

/* As --label-regex, --labels or --no-label say.  Returns the exit code. */
int labels_open(struct labels *l, const struct request *r);
void labels_close(struct labels *l);

/* Was one of these three options given? */
bool labels_given(const struct labels *l);

/*
 * The label of an image, into `out` of CLASS_NAME_BYTES_MAX + 1.  `path` is what the user sees
 * below SRC: --labels looks it up in its list, --label-regex is matched with it.  `folder` (or
 * NULL) is the label without these options; `where` names the image in messages.  With --no-label
 * it is an empty text.  An image whose label cannot be is bad input, which `bad` says.
 */
int labels_find(struct labels *l, const char *where, const char *path, const char *folder, char *out,
		struct bad_input *bad);

/*
 * Says that an image has no label, and which options help; `more` names another one.  Returns the
 * exit code.
 */
int labels_missing(const char *where, const char *more);

/* Lines of --labels that belong to no image are bad inputs: their files are missing. */
int labels_add_unused(const struct labels *l, struct image_list *images);

#endif
