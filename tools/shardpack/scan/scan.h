/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what a scan found beside the inputs: ignored files, and warnings
 */
#ifndef SHARD_SCAN_SCAN_H
#define SHARD_SCAN_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/ignored.h"

struct classes;
struct plan;

/* Of a field that may have no value: what was looked for in the first input that has none. */
struct scan_field {
	bool found; /* of a key of .json members, which a plan does not look at: one of them has it */
	char absent[400];
};

struct scan {			/* start it zeroed */
	struct ignored ignored; /* files, or members of files, that are not inputs */
	uint64_t stray_count;	/* those of them that would be images, but lie in no class's folder */
	char stray[256];	/* the first of these in byte order */
	uint64_t barren_count;	/* files of records that have none, archives without images */
	char barren[1024];	/* the first of these */
	struct text warnings;	/* one line each, as already printed, or in full what was printed in part */
	struct text notes;	/* likewise */
	struct scan_field field[RECIPE_NAMED_MAX];
};

void scan_free(struct scan *scan);

/*
 * All is listed: put ignored files in order, and warn of images of kinds that are not read.
 * Returns the exit code.
 */
int scan_end(struct scan *scan);

/* Print a line and keep it for the report; without the newline.  --quiet hides a note. */
void scan_warn(struct scan *scan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void scan_note(struct scan *scan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Keep a line for scan_field.absent, if there is none yet. */
void scan_absent(struct scan *scan, uint32_t field, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Count a file without records, or an archive without images.  When all files are listed, warn of
 * these, or refuse them if there are no others.  The refusal returns the exit code.
 */
void scan_barren(struct scan *scan, const char *where);
void scan_warn_of_barren(struct scan *scan, const char *what);
int scan_refuse_barren(const struct scan *scan, const char *root, const char *what, const char *remedy);

/*
 * Warn of class folders whose names say that they are none: parts of a dataset, such as train and
 * val, and what programs leave behind.
 */
void scan_warn_of_folders(struct scan *scan, const struct classes *folders);

/*
 * Warn if the names of folders are numbers, and byte order gives them other classes than these.
 */
void scan_warn_of_numbers(struct scan *scan, const struct classes *folders);

/* Warn of images below folders that are hidden themselves, or lie in such folders: copies, mostly. */
void scan_warn_of_hidden(struct scan *scan, const struct plan *plan);

#endif
