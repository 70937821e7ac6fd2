/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_sources.c - are the sources those that the folder of the dataset was begun with?
 *
 * While it is being built, .shardpack/sources says so.  A sealed dataset keeps the fingerprints
 * alone, in dataset.sources, so that copies of it are equal.  That file is not part of the format.
 * It may be missing, as in older datasets.  Where no fingerprint covers every byte, times
 * tell: shards are written after the sources were read, so a source that changed later is newer
 * than the oldest shard.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/build/output.h"
#include "tools/shardpack/input/kept_prints.h"
#include "tools/shardpack/input/origin_check.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/receipt/receipt.h"

/* The time of the oldest shard, ORIGIN_NO_TIME if there is none. */
static int oldest_shard(const struct job *job, uint64_t *ns)
{
	uint64_t written_ns;

	*ns = ORIGIN_NO_TIME;
	for (uint64_t k = 0; k < job->plan->shard_count; k++)
		if (receipt_shard_time(job->out_dir, k, &written_ns))
			*ns = written_ns < *ns ? written_ns : *ns;
		else if (errno != ENOENT)
			return fail(EXIT_IO, "%s/%05" PRIu64 ".shard: %s", job->out_dir, k, strerror(errno));
	return EXIT_DONE;
}

/* Sources of finished shards must not have been touched: their bytes may have been others. */
static int check_packed(const struct job *job, const struct origin *then, const struct origin *now,
			const struct origin_words *words)
{
	char path[FILES_PATH_BYTES];
	uint64_t first, count;
	int code = EXIT_DONE;

	for (uint64_t k = 0; code == EXIT_DONE && k < job->plan->shard_count; k++) {
		code = files_numbered(path, job->out_dir, "", k, ".shard");
		if (code != EXIT_DONE || access(path, F_OK) != 0)
			continue;
		plan_shard(job->plan, k, &first, &count);
		code = origin_check_packed(then, now, job->plan, words, first, count);
	}
	return code;
}

int output_check_sources(const struct job *job, const struct origin *now, bool trust_names)
{
	struct origin_words words = {job->source, job->anew};
	char path[FILES_PATH_BYTES];
	struct origin then = {0};
	uint64_t oldest;
	bool found = false;
	int code = files_path(path, job->state_dir, "sources");

	if (code == EXIT_DONE)
		code = origin_open(&then, job->plan, path, &found);
	if (code == EXIT_DONE && found)
		code = origin_compare(&then, now, job->plan, &words, trust_names);
	if (code == EXIT_DONE && found && !trust_names)
		code = check_packed(job, &then, now, &words);
	origin_close(&then);
	if (code != EXIT_DONE || found || trust_names)
		return code;
	code = oldest_shard(job, &oldest);
	if (code == EXIT_DONE && oldest != ORIGIN_NO_TIME)
		code = fail(EXIT_MISMATCH,
			    "%s: is missing, and there are shards: so nothing says whether the sources are still those "
			    "that were packed; %s, or go on with --trust-names",
			    path, job->anew);
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

int output_add_prints(const struct job *job, const struct origin *then, const struct origin *now)
{
	char path[FILES_PATH_BYTES];
	int code = files_path(path, job->state_dir, "sources");

	return code == EXIT_DONE ? origin_add_prints(then, now, path) : code;
}

/* ---- of a sealed dataset ---- */

static int dataset_id(const char *out_dir, char id[65])
{
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, out_dir, NULL, &err) != SHARD_OK)
		return fail_of_library(&err);
	shard_dataset_info(ds, &info);
	memcpy(id, info.id, sizeof(info.id));
	shard_dataset_close(ds);
	return EXIT_DONE;
}

/* A seal that was killed while it removed the plan has kept them; those of another dataset go. */
static int keep_none(const char *path, const char *id)
{
	struct text text = {0};
	bool found, ours;
	int code = files_read(path, &text, &found);

	ours = code == EXIT_DONE && found && kept_prints_are_of(&text, id);
	text_free(&text);
	return ours || code != EXIT_DONE ? code : files_remove(path);
}

int output_keep_prints(const struct job *job)
{
	char path[FILES_PATH_BYTES], id[65];
	struct text text = {0};
	struct shard_error err;
	int code = files_path(path, job->out_dir, KEPT_PRINTS_NAME);

	if (code == EXIT_DONE)
		code = dataset_id(job->out_dir, id);
	if (code == EXIT_DONE && !job->kept)
		return keep_none(path, id);
	if (code != EXIT_DONE)
		return code;
	kept_prints_write(job->kept, id, &text);
	if (text_failed(&text))
		code = fail(EXIT_IO, "%s: out of memory", path);
	else if (files_publish(path, text.data, text.bytes, &err) != SHARD_OK)
		code = fail_of_library(&err);
	text_free(&text);
	return code;
}

int output_finish_sealed(struct job *job)
{
	struct origin then = {0};
	bool found;
	int code = output_open_origin(job, true, &then, &found);

	job->kept = &then;
	if (code == EXIT_DONE && found)
		code = output_keep_prints(job);
	job->kept = NULL;
	origin_close(&then);
	return code == EXIT_DONE ? output_clear_state(job) : code;
}

/* Those in .shardpack, where they lie if the dataset was stopped while it was being finished. */
static int open_unkept(const struct job *job, const struct origin *now, struct origin *then, bool *found)
{
	int code = output_open_origin(job, true, then, found);

	if (code == EXIT_DONE && *found && then->per_input != now->per_input)
		code = fail(EXIT_BAD, "%s/sources: damaged, or of another plan", job->state_dir);
	return code;
}

/* The fingerprints of its sources, with the times of `now`. */
static int open_kept(const struct job *job, const struct origin *now, struct origin *then, bool *found)
{
	char path[FILES_PATH_BYTES], id[65];
	struct text text = {0};
	int code = files_path(path, job->out_dir, KEPT_PRINTS_NAME);

	if (code == EXIT_DONE)
		code = files_read(path, &text, found);
	if (code == EXIT_DONE && !*found)
		return open_unkept(job, now, then, found);
	if (code == EXIT_DONE)
		code = dataset_id(job->out_dir, id);
	if (code == EXIT_DONE)
		code = origin_share(then, now);
	if (code == EXIT_DONE && !kept_prints_read(&text, id, then)) {
		/* of a dataset that was here before, if the new one was not quite finished */
		origin_close(then);
		code = open_unkept(job, now, then, found);
		if (code == EXIT_DONE && !*found)
			code = fail(EXIT_BAD,
				    "%s: damaged, or of another dataset; if you remove it, only times tell whether "
				    "the sources are the same",
				    path);
	}
	text_free(&text);
	return code;
}

/* `then` is NULL if there are no fingerprints. */
static int check_newer(const struct job *job, const struct origin *then, const struct origin *now)
{
	char path[3 * PLAN_PATH_BYTES_MAX], source_time[ORIGIN_TIME_CHARS], shard_time[ORIGIN_TIME_CHARS];
	uint64_t oldest, slot, newest = origin_newest(then, now, job->plan, &slot);
	int code = oldest_shard(job, &oldest);

	if (code != EXIT_DONE || newest <= oldest)
		return code;
	origin_path(now, job->plan, slot, path);
	return fail(EXIT_MISMATCH,
		    "%s/%s: is newer than the dataset in %s: it was written or put there %s, and the first shard %s; "
		    "to pack it as it is, %s; if it has the same bytes as then, add --trust-names",
		    job->source, path, job->out_dir, origin_time_text(newest, source_time),
		    origin_time_text(oldest, shard_time), job->anew);
}

int output_check_sealed(const struct job *job, const struct origin *now, bool trust_names, bool *kept)
{
	char path[3 * PLAN_PATH_BYTES_MAX];
	struct origin then = {0};
	uint64_t slot;
	int code = open_kept(job, now, &then, kept);

	if (code == EXIT_DONE && *kept && !origin_same_prints(&then, now, &slot)) {
		origin_path(now, job->plan, slot, path);
		code = fail(EXIT_MISMATCH,
			    "%s/%s: has other bytes than the file of which the dataset in %s was made; give another "
			    "folder with -o, or %s",
			    job->source, path, job->out_dir, job->anew);
	}
	if (code == EXIT_DONE && !trust_names)
		code = check_newer(job, *kept ? &then : NULL, now);
	origin_close(&then);
	return code;
}
