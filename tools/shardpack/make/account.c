/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - what became of every input: the verdict, the account, the counts, the quarantine
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/words.h"
#include "shard_pack.h"
#include "tools/common/files.h"
#include "tools/common/json_out.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/plan.h"

/* ---- the verdict on one input ---- */

bool verdict_set(struct verdict *v, enum outcome outcome, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->message, sizeof(v->message), fmt, ap);
	va_end(ap);
	v->outcome = outcome;
	v->reason = reason;
	return false;
}

bool verdict_of_decoder(struct verdict *v, enum decode_status status, const struct decode_verdict *said)
{
	if (status == DECODE_BAD_INPUT)
		return verdict_set(v, OUTCOME_BAD, (uint32_t)said->reason, "%s", said->message);
	if (status != DECODE_OK)
		return verdict_set(
			v, OUTCOME_STOP, 0,
			"out of memory while it was decoded; use fewer workers with -j, or refuse large images with "
			"--limit pixels=N");
	if (said->reason && !v->reason)
		verdict_set(v, OUTCOME_RECORD, (uint32_t)said->reason, "%s", said->message);
	v->dropped |= said->dropped;
	if (!v->first[0])
		snprintf(v->first, sizeof(v->first), "%s", said->first);
	return true;
}

/* ---- how images and boxes fit into their records ---- */

static void add_field(struct fit_field *to, const struct fit_field *more)
{
	bool first = !fit_count_with(to);

	if (fit_count_with(more)) {
		to->least = first || more->least < to->least ? more->least : to->least;
		to->most = first || more->most > to->most ? more->most : to->most;
	}
	if (more->without && (!to->without || more->first < to->first))
		to->first = more->first;
	to->without += more->without;
	to->records += more->records;
}

static void add_dropped(struct fit_count *to, uint32_t what, uint64_t count, uint64_t first)
{
	if (count && (!to->dropped[what] || first < to->dropped_first[what]))
		to->dropped_first[what] = first;
	to->dropped[what] += count;
}

void fit_count_add(struct fit_count *to, const struct fit_count *more)
{
	to->images += more->images;
	to->enlarged += more->enlarged;
	to->padded += more->padded;
	to->boxes += more->boxes;
	to->empty_boxes += more->empty_boxes;
	to->narrow_boxes += more->narrow_boxes;
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++)
		add_field(&to->field[i], &more->field[i]);
	to->unknown += more->unknown;
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		add_dropped(to, i, more->dropped[i], more->dropped_first[i]);
}

void fit_count_image(struct fit_count *to, const struct transform_options *opt, uint32_t width, uint32_t height)
{
	struct transform_geometry g = transform_geometry(opt, width, height);

	to->images++;
	to->enlarged += g.width > width || g.height > height;
	to->padded += opt->fit != FIT_AREA && (g.width < opt->crop || g.height < opt->crop);
}

void fit_count_dropped(struct fit_count *to, uint32_t dropped, uint64_t ordinal)
{
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		if (dropped >> i & 1)
			add_dropped(to, i, 1, ordinal);
}

void fit_count_boxes(struct fit_count *to, const float *boxes, uint64_t count)
{
	to->boxes += count;
	for (; count; count--, boxes += 4) {
		float width = boxes[2] - boxes[0], height = boxes[3] - boxes[1];

		if (!(width > 0 && height > 0))
			to->empty_boxes++;
		else
			to->narrow_boxes += width < 1 || height < 1;
	}
}

void fit_count_without(struct fit_field *to, uint64_t input_idx)
{
	add_field(to, &(struct fit_field){.records = 1, .without = 1, .first = input_idx});
}

void fit_count_length(struct fit_field *to, uint32_t length)
{
	add_field(to, &(struct fit_field){.records = 1, .least = length, .most = length});
}

void fit_count_mask(struct fit_field *to, const struct shard_field *f, const uint8_t *pixels)
{
	size_t width = shard_dtype_bytes(f->dtype);
	struct fit_field one = {.records = 1, .least = UINT32_MAX};

	for (uint64_t at = 0; at < f->bytes; at += width) {
		uint32_t value = 0;

		memcpy(&value, pixels + at, width); /* little-endian, as the format */
		one.least = value < one.least ? value : one.least;
		one.most = value > one.most ? value : one.most;
	}
	add_field(to, &one);
}

uint64_t fit_count_with(const struct fit_field *f)
{
	return f->records - f->without;
}

/* ---- the account ---- */

void not_finite_add(struct not_finite *to, const struct not_finite *more)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		to->nan[f] += more->nan[f];
		to->infinite[f] += more->infinite[f];
	}
	to->unknown += more->unknown;
}

bool problem_fits(const struct problem *p, uint64_t input_count)
{
	return p->ordinal < input_count && p->reason >= 1 && p->reason <= UINT16_MAX &&
	       (p->how == PROBLEM_SKIPPED || p->how == PROBLEM_QUARANTINED || p->how == PROBLEM_ACCEPTED ||
		p->how == PROBLEM_FIRST);
}

enum problem_how account_how(uint32_t on_error, uint32_t reason)
{
	if (reason == SHARD_MISS_VANISHED || on_error == ON_ERROR_SKIP)
		return PROBLEM_SKIPPED;
	return on_error == ON_ERROR_QUARANTINE ? PROBLEM_QUARANTINED : PROBLEM_BAD;
}

void account_add(struct account *a, const struct problem *p)
{
	struct problem_list *l = p->how == PROBLEM_ACCEPTED ? &a->accepted_inputs
				 : p->how == PROBLEM_FIRST  ? &a->first_inputs
							    : &a->problems;

	grow(&l->item, &l->capacity, l->count + 1, sizeof(*l->item));
	l->item[l->count] = *p;
	l->item[l->count++].message = xstrdup(p->message);
	if (p->how == PROBLEM_UNREADABLE)
		a->unreadable++;
	else if (l == &a->problems)
		a->bad++;
	a->vanished += p->how == PROBLEM_SKIPPED && p->reason == SHARD_MISS_VANISHED;
}

void account_show(const struct job *job, const char *path, const struct problem *p)
{
	bool accepted = p->how == PROBLEM_ACCEPTED;
	uint64_t shown = ++*(accepted ? &job->account->accepted_shown : &job->account->shown);

	if (shown <= PROBLEMS_SHOWN_MAX)
		warn("%s/%s: %s%s", job->source, path, accepted ? "accepted: " : "", p->message);
	else if (shown == PROBLEMS_SHOWN_MAX + 1)
		warn("more than %d such inputs%s; the others are only counted; --report FILE lists them",
		     PROBLEMS_SHOWN_MAX, accepted ? " that are accepted" : "");
}

static int compare_ordinals(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;

	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static void sort(struct problem_list *l)
{
	if (l->count)
		qsort(l->item, l->count, sizeof(*l->item), compare_ordinals);
}

void account_sort(struct account *a)
{
	sort(&a->problems);
	sort(&a->accepted_inputs);
	sort(&a->first_inputs);
}

int account_check_bad(const struct account *a, const struct cli_amount *max, uint64_t ordinal, uint64_t planned)
{
	uint64_t allowed;
	char of[96] = "";

	if (!max)
		return EXIT_DONE;
	/* The product of a count below 2^40 and parts of a million stays below 2^64. */
	allowed = max->is_percent ? a->input_count * max->parts_per_million / UINT64_C(1000000) : max->count;
	if (a->bad <= allowed)
		return EXIT_DONE;
	if (max->is_percent)
		snprintf(of, sizeof(of), " (%.6g%% of %" PRIu64 " input%s)", (double)max->parts_per_million / 1e4,
			 a->input_count, a->input_count == 1 ? "" : "s");
	return fail(EXIT_BAD,
		    "--max-bad allows %" PRIu64 " bad input%s%s, and there %s %" PRIu64 "; stopped at input %" PRIu64
		    " of %" PRIu64,
		    allowed, allowed == 1 ? "" : "s", of, a->bad == 1 ? "is" : "are", a->bad, ordinal + 1, planned);
}

uint64_t account_failed(const struct account *a)
{
	uint64_t done = a->written + a->skipped + a->quarantined;

	return done <= a->input_count ? a->input_count - done : 0;
}

uint64_t account_not_done(const struct account *a)
{
	uint64_t failed = account_failed(a), wrong = a->unreadable;

	for (uint64_t i = 0; i < a->problems.count; i++)
		wrong += a->problems.item[i].how == PROBLEM_BAD;
	return failed > wrong ? failed - wrong : 0;
}

int account_judge(const struct account *a, bool bad_fails, const char *remedy)
{
	if (a->changed && a->changed == a->unreadable)
		return fail(EXIT_MISMATCH,
			    "%" PRIu64
			    " input%s changed since the plan was made; shards that need one of them were not "
			    "published; bring back the files of then, or %s",
			    a->changed, a->changed == 1 ? "" : "s", remedy);
	if (a->unreadable)
		return fail(EXIT_IO,
			    "%" PRIu64 " input%s could not be read; shards that need one of them were not "
			    "published",
			    a->unreadable, a->unreadable == 1 ? "" : "s");
	if (a->bad > a->vanished && bad_fails)
		return fail(EXIT_BAD, "%" PRIu64 " bad input%s; shards that need one of them were not published",
			    a->bad - a->vanished, a->bad - a->vanished == 1 ? "" : "s");
	return EXIT_DONE;
}

static void free_list(struct problem_list *l)
{
	for (uint64_t i = 0; i < l->count; i++)
		free((char *)l->item[i].message);
	free(l->item);
}

void account_free(struct account *a)
{
	free_list(&a->problems);
	free_list(&a->accepted_inputs);
	free_list(&a->first_inputs);
	memset(a, 0, sizeof(*a));
}

/* ---- inputs that a plan knows to be bad, before any of them is converted ---- */

/* Enter them, in the order of records, and show them, in that of the source. */
static void enter_known(const struct job *job)
{
	char path[PLAN_PATH_BYTES_MAX], message[BAD_INPUT_MESSAGE_BYTES];
	struct problem p = {.message = message};
	struct plan_input input;

	for (uint64_t i = 0; i < job->plan->input_count; i++) {
		plan_input(job->plan, i, &input);
		if (!input.bad_reason)
			continue;
		plan_input_path(job->plan, &input, path);
		plan_bad_message(&input, message);
		account_show(job, path, &p);
	}
	for (p.ordinal = 0; p.ordinal < job->plan->input_count; p.ordinal++) {
		plan_input(job->plan, plan_input_at(job->plan, p.ordinal), &input);
		if (!input.bad_reason)
			continue;
		plan_bad_message(&input, message);
		p.reason = input.bad_reason;
		p.how = account_how(job->plan->recipe.on_error, p.reason);
		account_add(job->account, &p);
	}
}

static const char *are(const struct plan *p)
{
	return p->bad_count == 1 ? "is" : "are";
}

int known_bad_look(const struct job *job, const struct source_times *times)
{
	const struct plan *p = job->plan;
	struct job look = *job;
	int rc;

	enter_known(job);
	look.look_only = true;
	look.times = times;
	job->account->input_count = p->input_count;
	rc = account_check_bad(job->account, job->max_bad, p->input_count - 1, p->input_count);
	if (!rc && p->bad_count < p->input_count)
		note("%" PRIu64 " of %" PRIu64 " inputs %s bad; looking at the others, too; nothing will be written",
		     p->bad_count, p->input_count, are(p));
	return rc ? rc : build_run(&look);
}

int known_bad_judge(const struct job *job, bool *told)
{
	const struct plan *p = job->plan;

	if (!p->bad_count)
		return EXIT_DONE;
	enter_known(job);
	if (p->recipe.on_error == ON_ERROR_FAIL) {
		*told = true;
		return fail(EXIT_BAD, "%" PRIu64 " of %" PRIu64 " inputs %s bad", p->bad_count, p->input_count, are(p));
	}
	*(p->recipe.on_error == ON_ERROR_SKIP ? &job->account->skipped : &job->account->quarantined) += p->bad_count;
	note("%" PRIu64 " of %" PRIu64 " inputs %s bad; left out", p->bad_count, p->input_count, are(p));
	return EXIT_DONE;
}

/* ---- inputs that were left out, kept for a person to look at ---- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

#define LIST_NAME	"quarantine.jsonl" /* no copy is called so */
#define OWNER_NAME	"quarantine.plan"  /* nor so: the digest of the plan, until it is sealed */
#define OWNER_BYTES	65
#define TEMP_PREFIX	".tmp."
#define PART_BYTES_MAX	200 /* of a path; .file, .folder and a temporary name have room behind it */
#define PART_BYTES_CUT	180
#define PART_HASH_BYTES 8
#define FILE_ENDING	".file"
#define FOLDER_ENDING	".folder"

/* What another run, or somebody else, has put into the folder. */
struct quarantine_content {
	bool absent, has_list, has_owner;
	char first[256]; /* in byte order; empty if there is nothing */
};

static void add_name(void *context, const char *name)
{
	struct quarantine_content *c = context;

	/* A killed run may have left temporary files. */
	if (!strcmp(name, ".") || !strcmp(name, "..") || !strncmp(name, TEMP_PREFIX, sizeof(TEMP_PREFIX) - 1))
		return;
	c->has_list |= !strcmp(name, LIST_NAME);
	c->has_owner |= !strcmp(name, OWNER_NAME);
	if (!c->first[0] || strcmp(name, c->first) < 0)
		snprintf(c->first, sizeof(c->first), "%s", name);
}

/* The path of the file that names the plan; to be freed.  `owner` is what it has for this plan. */
static char *owner_path(const char *dir, const struct plan *plan, char owner[OWNER_BYTES])
{
	hex_from_bytes(owner, plan->digest, 32);
	owner[OWNER_BYTES - 1] = '\n';
	return xasprintf("%s/" OWNER_NAME, dir);
}

int quarantine_check(const char *dir, const struct plan *plan)
{
	struct quarantine_content c = {0};
	char owner[OWNER_BYTES], *path = owner_path(dir, plan, owner);
	int rc = EXIT_DONE;
	bool ours = files_has_bytes(path, owner, OWNER_BYTES);

	if (!ours)
		rc = files_list(dir, add_name, &c, &c.absent);
	/* Another process of this plan may have begun in between. */
	if (!rc && c.first[0] && !files_has_bytes(path, owner, OWNER_BYTES)) {
		if (c.has_list || c.has_owner)
			rc = fail(
				EXIT_USAGE,
				"--quarantine %s: %s; nothing was touched (move it away or remove it, or give another "
				"folder: each dataset has its own)",
				dir,
				c.has_owner ? "is in use by an unfinished run of another plan"
					    : "holds what an earlier run left out");
		else
			rc = fail(
				EXIT_USAGE,
				"--quarantine %s: holds '%s', which no run of this plan left out; nothing was touched "
				"(give a folder that is empty or not there)",
				dir, c.first);
	}
	free(path);
	return rc;
}

int quarantine_open(char **out, const char *dir, const struct plan *plan)
{
	char owner[OWNER_BYTES], *path = owner_path(dir, plan, owner);
	struct shard_error err;
	int rc = EXIT_DONE;

	*out = files_make_dir(dir) ? realpath(dir, NULL) : NULL;
	if (!*out)
		rc = fail(EXIT_IO, "--quarantine %s: %s%s", dir, strerror(errno),
			  errno == ENOENT ? " (the folder above it must exist)" : "");
	if (!rc)
		rc = quarantine_check(dir, plan);
	/* If the name is taken now, two runs began at once, and only one of another plan is in the way. */
	if (!rc && shard_publish(path, owner, OWNER_BYTES, 0, &err) != SHARD_OK)
		rc = err.status == SHARD_E_EXISTS ? quarantine_check(dir, plan) : fail_of_library(&err);
	free(path);
	return rc;
}

void quarantine_close(const char *dir, const struct plan *plan)
{
	char owner[OWNER_BYTES], *path = owner_path(dir, plan, owner);

	if (files_has_bytes(path, owner, OWNER_BYTES))
		unlink(path);
	free(path);
}

static bool is_own_name(const char *part, size_t bytes)
{
	return (bytes == strlen(LIST_NAME) && !memcmp(part, LIST_NAME, bytes)) ||
	       (bytes == strlen(OWNER_NAME) && !memcmp(part, OWNER_NAME, bytes));
}

static bool ends_with(const char *text, size_t bytes, const char *ending)
{
	return bytes >= strlen(ending) && !memcmp(text + bytes - strlen(ending), ending, strlen(ending));
}

/*
 * The name of a part of a path: itself, unless it is too long for a file system, or could be taken
 * for the temporary file of a killed run.  Then its hash ends it.
 */
static char *name_of_part(const char *part, size_t bytes)
{
	bool is_temp = !strncmp(part, TEMP_PREFIX, sizeof(TEMP_PREFIX) - 1);
	size_t n = bytes > PART_BYTES_CUT ? PART_BYTES_CUT : bytes;
	char hex[2 * PART_HASH_BYTES + 1];
	uint8_t hash[32];

	if (bytes <= PART_BYTES_MAX && !is_temp)
		return xstrndup(part, bytes);
	while (n < bytes && n && ((uint8_t)part[n] & 0xc0) == 0x80) /* not in the middle of a character */
		n--;
	shard_sha256(part, bytes, hash);
	hex_from_bytes(hex, hash, PART_HASH_BYTES);
	return xasprintf("%.*s-%s", (int)n - is_temp, part + is_temp, hex);
}

/*
 * Where the copy goes; its folders are there then.  Keys of a table may be `a` and `a/b`: the one
 * that comes later, which may be any, goes to `a.file`, or `a.folder/b`.  *may_meet says whether
 * the copy of another key may have that name.  NULL with errno.
 */
static char *make_target(const char *quarantine, const char *path, bool *may_meet)
{
	char *target = xstrdup(quarantine), *name, *next;
	size_t n = strcspn(path, "/");
	bool ok = true, is_own = path[n] && is_own_name(path, n);

	*may_meet = ends_with(path, strlen(path), FILE_ENDING);
	for (; ok && path[n = strcspn(path, "/")]; path += n + 1, is_own = false) {
		*may_meet |= ends_with(path, n, FOLDER_ENDING);
		name = name_of_part(path, n);
		next = xasprintf("%s/%s", target, name);
		ok = is_own || files_make_dir(next);
		for (; ok && (is_own || !is_folder(next)); is_own = false) {
			free(target);
			target = next;
			next = xasprintf("%s" FOLDER_ENDING, target);
			ok = files_make_dir(next);
			*may_meet = true;
		}
		free(name);
		free(target);
		target = next;
	}
	name = ok ? name_of_part(path, n) : NULL;
	next = ok ? xasprintf("%s/%s", target, name) : NULL;
	free(name);
	free(target);
	return next;
}

bool quarantine_keep(const char *quarantine, const char *path, const void *bytes, size_t size, char *message,
		     size_t message_bytes)
{
	bool ok, may_meet, taken = is_own_name(path, strlen(path));
	char *target = make_target(quarantine, path, &may_meet), *file;
	struct shard_error err;
	int rc = SHARD_E_EXISTS;

	if (!target) {
		snprintf(message, message_bytes, "cannot copy it to quarantine: %s", strerror(errno));
		return false;
	}
	for (;;) {
		if (!taken)
			rc = shard_publish(target, bytes, size, 0, &err);
		ok = !taken && (rc == SHARD_OK || (rc == SHARD_E_EXISTS && files_has_bytes(target, bytes, size)));
		if (ok || !(taken || is_folder(target) || (rc == SHARD_E_EXISTS && may_meet)))
			break;
		file = xasprintf("%s" FILE_ENDING, target);
		free(target);
		target = file;
		taken = false;
		may_meet = true;
	}
	if (!ok && rc != SHARD_E_EXISTS)
		snprintf(message, message_bytes, "cannot copy it to quarantine: %s", err.message);
	else if (!ok)
		snprintf(message, message_bytes,
			 "the quarantine %s has another file of that name; if an earlier run left it, move it away, "
			 "or give another folder",
			 quarantine);
	free(target);
	return ok;
}

static void write_line(FILE *out, const struct plan *plan, const struct problem *problem)
{
	char class_name[PLAN_CLASS_NAMES_BYTES], path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;
	struct json_out j;

	plan_input(plan, plan_input_at(plan, problem->ordinal), &input);
	plan_input_path(plan, &input, path);
	json_out_start(&j, out);
	json_out_object_line(&j, NULL);
	json_out_string(&j, "input", path);
	if (plan_class_names(plan, &input, class_name))
		json_out_string(&j, "class", class_name);
	else
		json_out_null(&j, "class");
	json_out_u64(&j, "bytes", input.source_bytes);
	json_out_u64(&j, "ordinal", problem->ordinal);
	json_out_string(&j, "reason", reason_name(problem->reason));
	json_out_string(&j, "message", problem->message);
	json_out_end(&j);
	json_out_finish(&j); /* a memory stream: its one failure shows when it is closed */
}

/* For nftw(): what a killed run left in a folder.  What cannot be removed is in nobody's way. */
static int tidy(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)where;
	if (type == FTW_D)
		shard_remove_temps(path, NULL, NULL);
	return 0;
}

int quarantine_list(const char *quarantine, const struct plan *plan, const struct account *account)
{
	char *path = xasprintf("%s/" LIST_NAME, quarantine);
	struct memory_file out;
	struct shard_error err;
	int rc = EXIT_DONE;

	memory_file_open(&out);
	for (uint64_t i = 0; i < account->problems.count; i++)
		if (account->problems.item[i].how == PROBLEM_QUARANTINED)
			write_line(out.stream, plan, &account->problems.item[i]);
	memory_file_close(&out);
	if (files_publish(path, out.data, out.bytes, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	if (!rc)
		nftw(quarantine, tidy, 16, FTW_PHYS);
	free(path);
	free(out.data);
	return rc;
}
