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

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/plan/plan.h"

static bool is_ours(const struct job *job, uint64_t shard_idx, const struct shard_info *info)
{
	uint64_t first, count;

	plan_shard(job->plan, shard_idx, &first, &count);
	return !memcmp(info->plan_digest, job->plan->digest, 32) && info->plan_shard == shard_idx &&
	       info->planned_records == count && info->record_count + info->miss_count == count;
}

/* ---- the lines of a receipt, from the shard ---- */

#define RECORDS_AT_ONCE 4096

struct listing {
	const struct job *job;
	const char *path;    /* for messages: of the shard; of the dataset if `sealed` */
	bool sealed;	     /* there is no plan to build it again */
	struct converter *c; /* NULL: then the reason's name has to do */
	struct result *result;
	struct text *lines;
};

/* The sentence that came with a verdict is not in the shard; the same bytes give it again. */
static const char *explain(const struct listing *l, uint64_t ordinal, uint32_t reason, enum outcome outcome)
{
	if (l->c) {
		l->result->ordinal = ordinal;
		converter_run(l->c, l->result);
		if (l->result->verdict.outcome == outcome && l->result->verdict.reason == reason)
			return l->result->verdict.message;
	}
	return reason_name(reason);
}

static int list_misses(const struct listing *l, struct shard_reader *reader, uint64_t miss_count)
{
	uint64_t input_count = l->job->plan->input_count;
	struct shard_miss miss;
	struct shard_error err;

	for (uint64_t i = 0; i < miss_count; i++) {
		struct problem p;

		if (shard_reader_miss(reader, i, &miss, &err) != SHARD_OK)
			return fail_of_library(&err);
		p = (struct problem){miss.ordinal, miss.reason, (enum problem_how)miss.how, NULL};
		if (!problem_fits(&p, input_count) || (miss.how != SHARD_SKIPPED && miss.how != SHARD_QUARANTINED))
			return fail(l->sealed ? EXIT_BAD : EXIT_MISMATCH,
				    "%s: its list of left-out inputs is not valid: input %" PRIu64 " of %" PRIu64
				    ", reason %u, kind %u (must be 1, skipped, or 2, quarantined); %s",
				    l->path, miss.ordinal, input_count, miss.reason, miss.how,
				    l->sealed ? "run `shardcat verify`" : "remove this file and build it again");
		p.message = explain(l, miss.ordinal, miss.reason, OUTCOME_BAD);
		receipt_add(l->lines, &p);
	}
	return EXIT_DONE;
}

/* Step over inputs that are not records: `ordinal` becomes that of the next record. */
static int skip_misses(struct shard_reader *reader, uint64_t miss_count, uint64_t *miss_idx, uint64_t *ordinal)
{
	struct shard_miss miss;
	struct shard_error err;

	for (; *miss_idx < miss_count; ++*miss_idx, ++*ordinal) {
		if (shard_reader_miss(reader, *miss_idx, &miss, &err) != SHARD_OK)
			return fail_of_library(&err);
		if (miss.ordinal != *ordinal)
			break;
	}
	return EXIT_DONE;
}

/*
 * The records that were made of damaged inputs.  The field `damage` says which they are.  The records
 * of a shard are the inputs of its part of the plan, in order, without the ones that it leaves out.
 */
static int list_accepted(const struct listing *l, uint64_t shard_idx, struct shard_reader *reader,
			 const struct shard_info *info)
{
	const struct shard_field *field = recipe_damage(&l->job->plan->recipe, &l->job->schema);
	uint64_t ordinal, planned, miss_idx = 0, n;
	struct shard_error err;
	uint8_t *bytes;
	int rc = EXIT_DONE;

	if (!field)
		return EXIT_DONE;
	bytes = xmalloc(RECORDS_AT_ONCE, field->stride);
	plan_shard(l->job->plan, shard_idx, &ordinal, &planned);
	for (uint64_t record = 0; !rc && record < info->record_count; record += n) {
		n = info->record_count - record < RECORDS_AT_ONCE ? info->record_count - record : RECORDS_AT_ONCE;
		if (shard_reader_read(reader, field->group, record, n, bytes, &err) != SHARD_OK)
			rc = fail_of_library(&err);
		for (uint64_t i = 0; !rc && i < n; i++, ordinal++) {
			uint32_t damage = bytes[i * field->stride + field->offset];

			rc = skip_misses(reader, info->miss_count, &miss_idx, &ordinal);
			if (!rc && damage)
				receipt_add(l->lines, &(struct problem){ordinal, damage, PROBLEM_ACCEPTED,
									explain(l, ordinal, damage, OUTCOME_RECORD)});
		}
	}
	free(bytes);
	return rc;
}

/*
 * Nothing in the shard says which of its inputs have more frames or pages: look at each again, as
 * their first bytes decide, and not their names.
 */
static int list_firsts(const struct listing *l, uint64_t shard_idx)
{
	const struct job *job = l->job;
	uint64_t first, count;

	plan_shard(job->plan, shard_idx, &first, &count);
	if (!l->c)
		job->account->firsts_unknown = true;
	for (uint64_t i = first; l->c && i < first + count; i++) {
		const struct verdict *v = &l->result->verdict;

		if (interrupted())
			return EXIT_INTERRUPTED;
		l->result->ordinal = i;
		converter_run(l->c, l->result);
		if (v->outcome == OUTCOME_STOP)
			return fail(EXIT_IO, "%s", v->message);
		if (v->outcome == OUTCOME_OTHER)
			return fail(EXIT_MISMATCH, "%s/%s: %s", job->source, l->result->path, v->message);
		if (v->outcome == OUTCOME_RECORD && v->first[0])
			receipt_add(l->lines, &(struct problem){i, SHARD_MISS_UNSUPPORTED, PROBLEM_FIRST, v->first});
	}
	return EXIT_DONE;
}

static int list_problems(const struct listing *l, uint64_t shard_idx, struct shard_reader *reader)
{
	struct shard_info info;
	int rc;

	shard_reader_info(reader, &info);
	rc = list_misses(l, reader, info.miss_count);
	if (!rc)
		rc = list_accepted(l, shard_idx, reader, &info);
	return rc ? rc : list_firsts(l, shard_idx);
}

int published_recount(const struct job *job, uint64_t shard_idx, struct shard_reader *reader)
{
	struct receipt r = {.file_bytes = 0};
	const struct listing l = {.job = job, .path = job->out_dir, .sealed = true, .lines = &r.lines};
	struct shard_info info;
	int rc = list_problems(&l, shard_idx, reader);

	shard_reader_info(reader, &info);
	r.record_count = r.fit.unknown = r.not_finite.unknown = info.record_count;
	r.miss_count = info.miss_count;
	if (!rc)
		rc = receipt_account(&r, job->plan, job->account);
	receipt_free(&r);
	return rc;
}

/* ---- is it there? ---- */

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

/*
 * Make the receipt that the shard's builder did not come to, with the sentences that the inputs give,
 * if they are at hand.  It is not written if something in it is unknown.
 */
static int make_receipt(const struct job *job, uint64_t shard_idx, const char *path, struct shard_reader *reader,
			struct receipt *r)
{
	struct listing l = {.job = job, .path = path, .lines = &r->lines};
	struct shard_info info;
	int rc;

	detail("%s: exists, but without its receipt; verifying it", path);
	rc = read_all(job, path, reader, r->sha256);
	r->read_back = true;
	if (rc)
		return rc;
	shard_reader_info(reader, &info);
	if (!plan_names_inputs(job->plan)) { /* the reason says it all */
		rc = list_misses(&l, reader, info.miss_count);
	} else {
		l.result = xcalloc(1, sizeof(*l.result));
		l.result->record = xmalloc(converter_record_bytes(&job->schema), 1);
		if (job->source_fd >= 0)
			l.c = converter_open(job, NULL);
		rc = list_problems(&l, shard_idx, reader);
		converter_close(l.c);
		free(l.result->record);
		free(l.result);
	}
	return !rc && !job->account->firsts_unknown ? write_receipt(job, shard_idx, r) : rc;
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
	uint8_t sha256[32];
	uint64_t mtime_then;
	const char *spoilt;
	int rc;

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
		return receipt_refuse(job->out_dir, shard_idx, job->remedy);
	if (suffices(job, r, is.mtime_ns))
		return EXIT_DONE;
	mtime_then = r->mtime_ns;
	r->mtime_ns = is.mtime_ns;
	detail("%s: %s; verifying it", path,
	       mtime_then != is.mtime_ns ? "was written after its receipt, or copied"
	       : r->read_back		 ? "exists"
					 : "exists, and was not read back");
	/* The footer is as the receipt says, but the bytes before it may have changed. */
	rc = read_all(job, path, reader, sha256);
	if (!rc && memcmp(sha256, r->sha256, sizeof(sha256)) != 0)
		rc = fail(EXIT_BAD,
			  "%s: its SHA-256 is not that of its receipt; remove this file to have it built again", path);
	r->read_back = true;
	return rc ? rc : write_receipt(job, shard_idx, r);
}

bool published_peek(const struct job *job, uint64_t shard_idx, struct receipt *r, struct shard_reader **reader)
{
	const struct shard_reader_options pages = {.size = sizeof(pages), .pages_only = 1};
	char path[FILES_PATH_BYTES];
	struct receipt is = {0};
	struct shard_info info;

	*reader = NULL;
	if (files_numbered(path, job->out_dir, "", shard_idx, ".shard") != EXIT_DONE ||
	    shard_reader_open(reader, path, &pages, NULL) != SHARD_OK)
		return false;
	shard_reader_info(*reader, &info);
	if (is_ours(job, shard_idx, &info) && describe(job, shard_idx, &info, &is) &&
	    receipt_find(&job->receipts->before, shard_idx, &is, r, NULL) && receipt_is_same(r, &is) &&
	    suffices(job, r, is.mtime_ns))
		return true;
	receipt_free(r);
	shard_reader_close(*reader);
	*reader = NULL;
	return false;
}

int published_find(const struct job *job, uint64_t shard_idx, const struct receipt_texts *receipts, struct receipt *r,
		   bool *there)
{
	char path[FILES_PATH_BYTES];
	struct shard_reader *reader;
	struct shard_info info;
	struct shard_error err;
	struct stat st;
	int rc = files_numbered(path, job->out_dir, "", shard_idx, ".shard");

	*there = false;
	if (rc || job->look_only)
		return rc;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (shard_reader_open(&reader, path, NULL, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s; remove this file to have it built again",
			    err.message);
	shard_reader_info(reader, &info);
	if (!is_ours(job, shard_idx, &info))
		rc = fail(EXIT_USAGE, "%s: a shard of another plan; nothing was touched", path);
	else
		rc = settle_receipt(job, shard_idx, path, receipts, reader, r);
	shard_reader_close(reader);
	*there = !rc;
	return rc;
}
