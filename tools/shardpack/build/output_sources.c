/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_sources.c - are the sources those that the folder of the dataset was begun with?
 *
 * While it is being built, .shardpack/sources says so.  A sealed dataset has none: copies of it
 * are equal.  There the files themselves tell: shards are written after the sources were read, so a
 * source that changed later is newer than the oldest shard.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/build/output.h"
#include "tools/shardpack/build/receipt.h"
#include "tools/shardpack/input/origin_check.h"
#include "tools/shardpack/plan/plan.h"

/* The time of the oldest shard, ORIGIN_NO_TIME if there is none. */
static int oldest_shard(const char *out_dir, const struct plan *plan, uint64_t *ns)
{
	char path[FILES_PATH_BYTES];
	uint64_t written_ns;
	int code = EXIT_DONE;

	*ns = ORIGIN_NO_TIME;
	for (uint64_t k = 0; code == EXIT_DONE && k < plan->shard_count; k++) {
		code = files_numbered(path, out_dir, "", k, ".shard");
		if (code != EXIT_DONE)
			break;
		if (receipt_shard_time(out_dir, k, &written_ns))
			*ns = written_ns < *ns ? written_ns : *ns;
		else if (errno != ENOENT)
			code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	}
	return code;
}

/* Sources of finished shards must not have been touched: their bytes may have been others. */
static int check_packed(const char *out_dir, const struct plan *plan, const struct origin *then,
			const struct origin *now, const char *root)
{
	char path[FILES_PATH_BYTES];
	uint64_t first, count;
	int code = EXIT_DONE;

	for (uint64_t k = 0; code == EXIT_DONE && k < plan->shard_count; k++) {
		code = files_numbered(path, out_dir, "", k, ".shard");
		if (code != EXIT_DONE || access(path, F_OK) != 0)
			continue;
		plan_shard(plan, k, &first, &count);
		code = origin_check_packed(then, now, plan, root, first, count);
	}
	return code;
}

int output_check_sources(const char *out_dir, const struct plan *plan, const struct origin *now, const char *root,
			 bool trust_names)
{
	char path[FILES_PATH_BYTES];
	struct origin then = {0};
	uint64_t oldest;
	bool found = false;
	int code = files_path(path, out_dir, ".shardpack/sources");

	if (code == EXIT_DONE)
		code = origin_open(&then, plan, path, &found);
	if (code == EXIT_DONE && found)
		code = origin_compare(&then, now, plan, root, trust_names);
	if (code == EXIT_DONE && found && !trust_names)
		code = check_packed(out_dir, plan, &then, now, root);
	origin_close(&then);
	if (code != EXIT_DONE || found || trust_names)
		return code;
	code = oldest_shard(out_dir, plan, &oldest);
	if (code == EXIT_DONE && oldest != ORIGIN_NO_TIME)
		code = fail(EXIT_MISMATCH,
			    "%s: is missing, and there are shards: so nothing says whether the sources are still those "
			    "that were packed; --replace builds all of the dataset anew, and --trust-names goes on",
			    path);
	return code;
}

int output_same_sources(const char *out_dir, const struct plan *plan, const struct origin *now, bool trust_names,
			bool *same)
{
	char path[FILES_PATH_BYTES];
	struct origin then = {0};
	bool found = false;
	int code = files_path(path, out_dir, ".shardpack/sources");

	if (code == EXIT_DONE)
		code = origin_open(&then, plan, path, &found);
	*same = code == EXIT_DONE && (found ? origin_is_same(&then, now, plan, trust_names) : trust_names);
	origin_close(&then);
	return code;
}

int output_open_origin(const struct job *job, bool trust_names, struct origin *out, bool *found)
{
	char path[FILES_PATH_BYTES];
	int code = files_path(path, job->state_dir, "sources");

	*found = false;
	if (code == EXIT_DONE)
		code = origin_open(out, job->plan, path, found);
	if (code == EXIT_DONE && !*found && !trust_names)
		code = fail(EXIT_MISMATCH,
			    "%s: is missing, so nothing says whether the sources are those of the plan; run the same "
			    "`shardpack plan` command again to restore it, or add --trust-names",
			    path);
	return code;
}

int output_check_newer(const char *out_dir, const struct plan *plan, const struct origin *now, const char *root)
{
	char path[3 * PLAN_PATH_BYTES_MAX], source_time[ORIGIN_TIME_CHARS], shard_time[ORIGIN_TIME_CHARS];
	uint64_t oldest;
	int code = oldest_shard(out_dir, plan, &oldest);

	if (code != EXIT_DONE || now->newest_ns <= oldest)
		return code;
	origin_path(now, plan, now->newest_slot, path);
	return fail(EXIT_MISMATCH,
		    "%s/%s: is newer than the dataset in %s: it was written or put there %s, and the first shard %s; "
		    "--replace builds the dataset anew; if the file has the same bytes as then, add --trust-names",
		    root, path, out_dir, origin_time_text(now->newest_ns, source_time),
		    origin_time_text(oldest, shard_time));
}
