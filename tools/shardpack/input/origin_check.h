/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_check.h - are the files of the source still those that the plan found?
 *
 * A file differs if it was written at another time, or if its fingerprint is another one.  Its
 * time may have been set back.  But the system also notes when anything of a file changed, and
 * nobody can set that.  If that differs, only a fingerprint of every byte tells that its bytes are
 * the same; without one, a file of which something was packed counts as changed.  With
 * --trust-names fingerprints alone count.
 */
#ifndef SHARD_INPUT_ORIGIN_CHECK_H
#define SHARD_INPUT_ORIGIN_CHECK_H

#include <stdbool.h>

#include "tools/shardpack/input/origin.h"

/* What messages say. */
struct origin_words {
	const char *root; /* the folder of the sources */
	const char *anew; /* how to pack all anew */
};

/*
 * Read the fingerprints of all files that `now` has one for into now->print.  A file of its own has
 * none if it is gone, must not be read, or was written at another time than its entry says.  The
 * converter reports that when it reads the file.
 */
int origin_take_prints(struct origin *now, const struct plan *p, const struct source_place *place, struct stored *s,
		       bool trust_names);

/* Is every file as it was then? */
bool origin_is_same(const struct origin *then, const struct origin *now, const struct plan *p, bool trust_names);

/*
 * EXIT_DONE, or EXIT_MISMATCH and a sentence that names the first file that is not as it was.  Of
 * files of their own the time of change does not count: before one is read, its mode may be mended.
 */
int origin_compare(const struct origin *then, const struct origin *now, const struct plan *p,
		   const struct origin_words *words, bool trust_names);

/*
 * Are all fingerprints the same?  If not, *slot is the first file that has another one.  A
 * missing fingerprint matches.
 */
bool origin_same_prints(const struct origin *then, const struct origin *now, uint64_t *slot);

/*
 * The last change to a file, of its bytes, its mode or a name on the way to it; *slot is that file.
 * With `then`, files do not count of which every byte is proven to be the same.
 */
uint64_t origin_newest(const struct origin *then, const struct origin *now, const struct plan *p, uint64_t *slot);

/*
 * Call this after origin_compare() has found nothing.  Compares the times of change of the files
 * that the ordinals from `first` on need.
 */
int origin_check_packed(const struct origin *then, const struct origin *now, const struct plan *p,
			const struct origin_words *words, uint64_t first, uint64_t count);

/*
 * Call this when the records of some ordinals are made: was a file of theirs written after it was
 * read?  Files of their own only.  One that was removed has done its work.
 */
int origin_check_written(const struct origin *then, const struct plan *p, int root_fd, const struct origin_words *words,
			 uint64_t first, uint64_t count);

/*
 * How the files of a plan that was read are now, when they were just opened.  Of files of their own
 * only the fingerprints of the sample are taken, and entries are those of `then`: the converter
 * compares the time of each when it reads it.  Close it all the same.
 */
int origin_look_again(struct origin *now, const struct origin *then, const struct plan *p,
		      const struct source_place *place, struct stored *s, bool trust_names);

/*
 * A file that could not be read when the plan was made, and can be now: write its fingerprint into
 * the file that `then` was opened from.  What was opened shows it.
 */
int origin_add_prints(const struct origin *then, const struct origin *now, const char *path);

#endif
