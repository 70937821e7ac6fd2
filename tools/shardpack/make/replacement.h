/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replacement.h - a dataset built beside another one, and put in its place at once
 */
#ifndef SHARD_BUILD_REPLACEMENT_H
#define SHARD_BUILD_REPLACEMENT_H

struct plan;
struct source_times;

/*
 * Where the new one is built: `.NAME.new` beside OUT.  To be freed; NULL, and a message, without
 * memory.
 */
char *replace_work_dir(const char *out_absolute);

/*
 * Get the place ready: what an earlier, other --replace left there unfinished is removed, what this
 * plan left there of the sources as they are `now` stays.  Returns the exit code.
 */
int replace_prepare(const char *work_dir, const struct plan *plan, const struct source_times *now);

/*
 * Exchange the two names and remove the old dataset, which is then at `work_dir`.  A reader
 * sees the old one or the new one.  Where the file system cannot exchange names, there is
 * a moment without OUT, and after a kill in it the old one lies at `.NAME.new.old`.
 */
int replace_swap(const char *out_absolute, const char *work_dir);

#endif
