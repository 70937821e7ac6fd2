/* SPDX-License-Identifier: Apache-2.0 */
/*
 * published_shard.c - is a shard of the plan there already?
 *
 * A name appears only when its shard is complete and verified, so what is there and says
 * that it belongs to this plan needs no second look, as long as there is a receipt.
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/make/job.h"

static bool is_ours(const struct job *job, uint64_t shard_idx, const struct shard_info *info)
{
	uint64_t first, count;

	plan_shard(job->plan, shard_idx, &first, &count);
	return !memcmp(info->plan_digest, job->plan->digest, 32) && info->plan_shard == shard_idx &&
	       info->planned_records == count && info->record_count + info->miss_count == count;
}

/* Lines for a receipt on their way. */
struct listing {
	struct converter *c; /* NULL: then the reason's name has to do */
	struct result *result;
	struct text *lines;
};

/* The sentence that came with a verdict is not in the shard; the same bytes give it again. */
static const char *explain(struct listing *l, uint64_t ordinal, uint32_t reason, enum outcome outcome)
{
	if (l->c) {
		l->result->ordinal = ordinal;
		converter_run(l->c, l->result);
		if (l->result->verdict.outcome == outcome && l->result->verdict.reason == reason)
			return l->result->verdict.message;
	}
	return shard_miss_reason_name(reason);
}

static int list_accepted(void *context, uint64_t ordinal, uint32_t reason)
{
	struct listing *l = context;

	receipt_add_record(l->lines, ordinal, reason, PROBLEM_ACCEPTED, explain(l, ordinal, reason, OUTCOME_RECORD));
	return EXIT_DONE;
}

/*
 * Nothing in the shard says which of its inputs have more frames or pages: look at each again, as
 * their first bytes decide, and not their names.
 */
static int list_firsts(const struct job *job, uint64_t shard_idx, struct listing *l)
{
	const struct verdict *v = &l->result->verdict;
	uint64_t first, count;

	plan_shard(job->plan, shard_idx, &first, &count);
	if (!l->c)
		job->account->firsts_unknown = true;
	for (uint64_t i = first; l->c && i < first + count; i++) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		l->result->ordinal = i;
		converter_run(l->c, l->result);
		if (v->outcome == OUTCOME_STOP)
			return fail(EXIT_IO, "%s", v->message);
		if (v->outcome == OUTCOME_OTHER)
			return fail(EXIT_MISMATCH, "%s/%s: %s", job->source, l->result->path, v->message);
		if (v->outcome == OUTCOME_RECORD && v->first[0])
			receipt_add_record(l->lines, i, SHARD_MISS_UNSUPPORTED, PROBLEM_FIRST, v->first);
	}
	return EXIT_DONE;
}

static int list_misses(const struct job *job, const char *path, struct shard_reader *reader, struct listing *l)
{
	struct shard_info info;
	struct shard_miss miss;
	struct shard_error err;
	shard_reader_info(reader, &info);
	for (uint64_t i = 0; i < info.miss_count; i++) {
		if (shard_reader_miss(reader, i, &miss, &err) != SHARD_OK)
			return fail_of_library(&err);
		if (!account_miss_fits(&miss, job->plan->input_count))
			return fail(EXIT_MISMATCH,
				    "%s: its list of left-out inputs is not valid: input %" PRIu64 " of %" PRIu64
				    ", reason %u, kind %u (must be 1, skipped, or 2, quarantined); remove this file "
				    "and build it again",
				    path, miss.ordinal, job->plan->input_count, miss.reason, miss.how);
		receipt_add_miss(l->lines, &miss, explain(l, miss.ordinal, miss.reason, OUTCOME_BAD));
	}
	return EXIT_DONE;
}

static int list_problems(const struct job *job, uint64_t shard_idx, const char *path, struct shard_reader *reader,
			 struct text *lines)
{
	struct listing l = {.lines = lines};
	int code;

	if (!plan_names_inputs(job->plan)) /* the reason says it all */
		return list_misses(job, path, reader, &l);
	l.result = calloc(1, sizeof(*l.result));
	if (!l.result)
		return fail(EXIT_IO, "%s: out of memory", path);
	l.result->record = malloc(converter_record_bytes(&job->schema));
	if (l.result->record && job->source_fd >= 0)
		l.c = converter_open(job->plan, job->source_fd, job->stored, job->times, job->quarantine, NULL,
				     job->sandbox);
	code = list_misses(job, path, reader, &l);
	if (code == EXIT_DONE)
		code = accepted_find(job, shard_idx, reader, list_accepted, &l);
	if (code == EXIT_DONE)
		code = list_firsts(job, shard_idx, &l);
	converter_close(l.c);
	free(l.result->record);
	free(l.result);
	return code;
}

/* Read all of the shard. */
static int read_all(const struct job *job, const char *path, struct shard_reader *reader, uint8_t sha256[32])
{
	struct shard_verify_options opt = {.size = sizeof(opt), .thread_count = job->worker_count};
	struct shard_verify_report report;
	struct shard_error err;

	if (shard_reader_verify(reader, &opt, &report, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s; remove this file to have it built again",
			    err.message);
	return files_sha256(path, sha256);
}

static int write_receipt(const struct job *job, uint64_t shard_idx, const struct receipt *r)
{
	struct shard_error err;

	if (receipt_files_add(job->receipts, shard_idx, r, &err) == SHARD_OK)
		return EXIT_DONE;
	return fail_of_library(&err);
}

/* Write the receipt that the shard's builder did not come to; not if something in it is unknown. */
static int make_receipt(const struct job *job, uint64_t shard_idx, const char *path, struct shard_reader *reader,
			struct receipt *r)
{
	int code;

	detail("%s: exists, but without its receipt; verifying it", path);
	code = read_all(job, path, reader, r->sha256);
	r->read_back = true;
	if (code == EXIT_DONE)
		code = list_problems(job, shard_idx, path, reader, &r->lines);
	return code == EXIT_DONE && !job->account->firsts_unknown ? write_receipt(job, shard_idx, r) : code;
}

/* The footer is as the receipt says, but the bytes before it may have changed. */
static int check_again(const struct job *job, uint64_t shard_idx, const char *path, struct shard_reader *reader,
		       struct receipt *r)
{
	uint8_t sha256[32];
	int code = read_all(job, path, reader, sha256);

	if (code == EXIT_DONE && memcmp(sha256, r->sha256, sizeof(sha256)) != 0)
		code = fail(EXIT_BAD,
			    "%s: its SHA-256 is not that of its receipt; remove this file to have it built again",
			    path);
	r->read_back = true;
	return code == EXIT_DONE ? write_receipt(job, shard_idx, r) : code;
}

/* What a receipt of this shard says of it, but no SHA-256; false, with errno, if it is gone. */
static bool describe(const struct job *job, uint64_t shard_idx, const struct shard_info *info, struct receipt *is)
{
	is->file_bytes = info->file_bytes;
	is->record_count = info->record_count;
	is->miss_count = info->miss_count;
	memcpy(is->root, info->root, sizeof(is->root));
	return receipt_shard_time(job->out_dir, shard_idx, &is->mtime_ns);
}

/* Does the receipt spare us reading the shard? */
static bool suffices(const struct job *job, const struct receipt *r, uint64_t mtime_ns)
{
	return r->mtime_ns == mtime_ns && !job->verify_all && (r->read_back || !job->read_back);
}

/* *r becomes the receipt of a shard of this plan. */
static int settle_receipt(const struct job *job, uint64_t shard_idx, const char *path,
			  const struct receipt_texts *receipts, struct shard_reader *reader, struct receipt *r)
{
	struct shard_info info;
	struct receipt is = {0};
	uint64_t mtime_then;
	const char *spoilt;

	shard_reader_info(reader, &info);
	if (!describe(job, shard_idx, &info, &is))
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (!receipt_find(receipts, shard_idx, &is, r, &spoilt)) {
		if (spoilt)
			detail("%s/receipts-*: the receipt of shard %" PRIu64 " is %s; making it again from the shard",
			       job->state_dir, shard_idx, spoilt);
		*r = is;
		r->fit.unknown = r->not_finite.unknown = is.record_count;
		return make_receipt(job, shard_idx, path, reader, r);
	}
	if (!receipt_is_same(r, &is))
		return receipt_refuse(job->out_dir, shard_idx, job->anew);
	if (suffices(job, r, is.mtime_ns))
		return EXIT_DONE;
	mtime_then = r->mtime_ns;
	r->mtime_ns = is.mtime_ns;
	detail("%s: %s; verifying it", path,
	       mtime_then != is.mtime_ns ? "was written after its receipt, or copied"
	       : r->read_back		 ? "exists"
					 : "exists, and was not read back");
	return check_again(job, shard_idx, path, reader, r);
}

static int open_published(const struct job *job, uint64_t shard_idx, const struct receipt_texts *receipts,
			  struct receipt *r, struct shard_reader **reader)
{
	char path[FILES_PATH_BYTES];
	struct shard_info info;
	struct shard_error err;
	struct stat st;
	int code = files_numbered(path, job->out_dir, "", shard_idx, ".shard");

	*reader = NULL;
	if (code != EXIT_DONE || job->look_only)
		return code;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (shard_reader_open(reader, path, NULL, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s; remove this file to have it built again",
			    err.message);
	shard_reader_info(*reader, &info);
	if (!is_ours(job, shard_idx, &info))
		code = fail(EXIT_USAGE, "%s: a shard of another plan; nothing was touched", path);
	else
		code = settle_receipt(job, shard_idx, path, receipts, *reader, r);
	if (code != EXIT_DONE) {
		shard_reader_close(*reader);
		*reader = NULL;
	}
	return code;
}

bool published_peek(const struct job *job, uint64_t shard_idx, struct receipt *r, struct shard_outline **outline)
{
	char path[FILES_PATH_BYTES];
	struct receipt is = {0};
	struct shard_info info;

	*outline = NULL;
	if (files_numbered(path, job->out_dir, "", shard_idx, ".shard") != EXIT_DONE ||
	    shard_outline_open(outline, path, NULL) != SHARD_OK)
		return false;
	shard_outline_info(*outline, &info);
	if (is_ours(job, shard_idx, &info) && describe(job, shard_idx, &info, &is) &&
	    receipt_find(&job->receipts->before, shard_idx, &is, r, NULL) && receipt_is_same(r, &is) &&
	    suffices(job, r, is.mtime_ns))
		return true;
	receipt_free(r);
	shard_outline_close(*outline);
	*outline = NULL;
	return false;
}

int published_find(const struct job *job, uint64_t shard_idx, const struct receipt_texts *receipts, struct receipt *r,
		   bool *there)
{
	struct shard_reader *reader;
	int code = open_published(job, shard_idx, receipts, r, &reader);

	*there = reader != NULL;
	shard_reader_close(reader);
	return code;
}
