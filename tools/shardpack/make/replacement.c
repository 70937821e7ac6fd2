/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replacement.c - a dataset built beside another one, and put in its place at once
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"

char *replace_work_dir(const char *out_absolute)
{
	const char *slash = strrchr(out_absolute, '/');
	char *out;

	if (asprintf(&out, "%.*s/.%s.new", (int)(slash - out_absolute), out_absolute, slash + 1) < 0) {
		fail(EXIT_IO, "out of memory");
		return NULL;
	}
	return out;
}

int replace_prepare(const char *work_dir, const struct plan *plan, const struct source_times *now)
{
	enum output_state state;
	char why[OUTPUT_WHY_BYTES];
	bool same = true;
	int code = output_refuse_link(work_dir);

	if (code == EXIT_DONE)
		code = output_examine(work_dir, plan, &state, why);
	if (code != EXIT_DONE)
		return code;
	if (state == OUTPUT_FOREIGN)
		return fail(EXIT_USAGE, "%s: holds %s; --replace builds in this folder, so remove it first", work_dir,
			    why);
	if (state == OUTPUT_STARTED)
		code = output_same_sources(work_dir, plan, now, &same);
	if (code != EXIT_DONE)
		return code;
	if (state == OUTPUT_SEALED || (state == OUTPUT_STARTED && !same))
		snprintf(why, sizeof(why), "a dataset that may be of other sources");
	if (state == OUTPUT_OTHER || why[0]) {
		detail("%s: holds %s; removed", work_dir, why);
		return output_remove(work_dir);
	}
	return EXIT_DONE;
}

/* Two renames instead of one exchange. */
static int swap_in_steps(const char *out, const char *work_dir)
{
	char aside[FILES_PATH_BYTES];
	int code = EXIT_DONE;

	if (snprintf(aside, sizeof(aside), "%s.old", work_dir) >= (int)sizeof(aside))
		return fail(EXIT_USAGE, "%s.old: this path is too long", work_dir);
	if (rename(out, aside) != 0)
		return fail(EXIT_IO, "%s: cannot move this folder aside: %s", out, strerror(errno));
	if (rename(work_dir, out) != 0) {
		code = fail(EXIT_IO, "%s: cannot move this folder to %s: %s", work_dir, out, strerror(errno));
		if (rename(aside, out) != 0)
			code = fail(EXIT_IO, "%s: the old %s lies here now, and cannot be moved back: %s", aside, out,
				    strerror(errno));
		return code;
	}
	if (rename(aside, work_dir) != 0)
		return fail(EXIT_IO, "%s: the old dataset lies here, and cannot be moved: %s", aside, strerror(errno));
	return EXIT_DONE;
}

int replace_swap(const char *out_absolute, const char *work_dir)
{
	char parent[FILES_PATH_BYTES];
	int code = EXIT_DONE;

	if (renameat2(AT_FDCWD, work_dir, AT_FDCWD, out_absolute, RENAME_EXCHANGE) != 0) {
		if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
			return fail(EXIT_IO, "%s: cannot replace %s: %s", work_dir, out_absolute, strerror(errno));
		code = swap_in_steps(out_absolute, work_dir);
	}
	if (code == EXIT_DONE)
		code = files_path(parent, work_dir, "..");
	/* The new name is durable before anything of the old dataset goes. */
	if (code == EXIT_DONE)
		code = files_sync_dir(parent);
	return code == EXIT_DONE ? output_remove(work_dir) : code;
}
