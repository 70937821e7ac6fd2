/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_status.c - `shardpack status`: how far a dataset is
 *
 * It looks, and changes nothing, so it may be asked while others build.
 */
#include "tools/shardpack/shardpack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "tools/common/files.h"
#include "tools/common/human.h"
#include "tools/common/json_out.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"

struct status_options {
	const char *out, *spool;
	bool json, retry_list;
};

#define CLAIMS_SHOWN_MAX 20

#define AT(member) .offset = offsetof(struct status_options, member)

/* clang-format off */
static const struct cli_option positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, AT(out), .help = "folder that was given to `shardpack plan`"}, {0}};

static const struct cli_option options[] = {
	{.name = "json", .kind = CLI_FLAG, AT(json), .help = "print one JSON document"},
	{.name = "retry-list", .kind = CLI_FLAG, AT(retry_list), .help = "print only the numbers of missing shards, such as 0,17,203-210"},
	{.name = "spool", .kind = CLI_DIR, AT(spool), .arg_name = "DIR", .default_note = "beside DIR",
	 .help = "folder for temporary files"},
	{0}};
/* clang-format on */

struct status {
	const char *dir;
	bool sealed;
	uint64_t shard_count, done;
	uint64_t pace_ns;    /* of a shard; 0: not known */
	struct text missing; /* "0,17,203-210"; empty if none is */
	uint64_t running;    /* of the missing ones: claimed */
	struct claim_owner self;
	struct status_claim {
		uint64_t first, last;
		struct claim_view view;
	} * claims; /* of missing shards, neighbours of one process together */
	uint64_t claim_count, claim_room;
};

/* A sealed dataset has all its shards, and its plan is gone. */
static int count_sealed(struct status *s)
{
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, s->dir, NULL, &err) != SHARD_OK)
		return fail_of_library(&err);
	shard_dataset_info(ds, &info);
	s->done = s->shard_count = info.shard_count;
	shard_dataset_close(ds);
	return EXIT_DONE;
}

/* Does it go on where the last one ends? */
static bool continues(const struct status *s, uint64_t shard_idx, const struct claim_view *v)
{
	const struct status_claim *before = s->claim_count ? &s->claims[s->claim_count - 1] : NULL;
	const struct claim_owner *a = before ? &before->view.owner : NULL, *b = &v->owner;

	return before && before->last + 1 == shard_idx && before->view.failed == v->failed && b->pid &&
	       a->pid == b->pid && a->start == b->start && !strcmp(a->host, b->host) && !strcmp(a->boot, b->boot) &&
	       !strcmp(a->space, b->space) && !strcmp(a->job, b->job);
}

/* Which process builds a shard?  Whether a process of another machine lives cannot be told here. */
static int look_at_claim(struct status *s, uint64_t shard_idx, const char *state_dir)
{
	struct status_claim c = {.first = shard_idx, .last = shard_idx};
	char path[FILES_PATH_BYTES];
	int rc = claim_path(path, state_dir, shard_idx);

	if (rc == EXIT_DONE)
		rc = claim_look(path, &c.view);
	if (rc != EXIT_DONE || !c.view.there || (!c.view.failed && claim_is_dead(&c.view, &s->self)))
		return rc;
	s->running += !c.view.failed;
	if (continues(s, shard_idx, &c.view)) {
		s->claims[s->claim_count - 1].last = shard_idx;
		return EXIT_DONE;
	}
	grow(&s->claims, &s->claim_room, s->claim_count + 1, sizeof(c));
	s->claims[s->claim_count++] = c;
	return EXIT_DONE;
}

static int look_at_claims(struct status *s, const struct shard_list *list, const char *state_dir)
{
	bool *claimed = xcalloc(list->shard_count + 1, sizeof(*claimed));
	int rc = claim_list(state_dir, list->shard_count, claimed);

	claim_self(&s->self, "");
	for (uint64_t k = 0; rc == EXIT_DONE && k < list->shard_count; k++)
		if (claimed[k] && !list->there[k])
			rc = look_at_claim(s, k, state_dir);
	free(claimed);
	return rc;
}

static int examine(struct status *s, const char *spool)
{
	struct shard_list list = {0};
	struct plan plan = {0};
	struct job job = {.plan = &plan};
	char *source = NULL, *quarantine = NULL;
	int rc = output_set_dir(&job, s->dir);

	command_open_shelf(&plan, spool ? spool : s->dir);
	if (rc == EXIT_DONE)
		rc = output_load(&job, &plan, &source, &quarantine, &s->sealed);
	if (rc == EXIT_DONE && s->sealed) {
		rc = count_sealed(s);
	} else if (rc == EXIT_DONE) {
		rc = shard_list_look(&list, s->dir, plan.shard_count);
		if (rc == EXIT_DONE) {
			s->pace_ns = shard_list_pace(&list, s->dir);
			rc = look_at_claims(s, &list, job.state_dir);
		}
		s->shard_count = plan.shard_count;
		s->done = list.there_count;
		shard_list_missing(&list, SIZE_MAX, &s->missing);
	}
	shard_list_free(&list);
	plan_free(&plan);
	free(source);
	free(quarantine);
	return rc;
}

/* null if it is not known */
static void json_word(struct json_out *j, const char *name, const char *word)
{
	if (*word)
		json_out_string(j, name, word);
	else
		json_out_null(j, name);
}

static void json_claim(struct json_out *j, const struct status_claim *c)
{
	const struct claim_owner *o = &c->view.owner;

	json_out_object_line(j, NULL);
	json_out_u64(j, "first", c->first);
	json_out_u64(j, "last", c->last);
	json_word(j, "host", o->host);
	if (o->pid)
		json_out_u64(j, "process", o->pid);
	else
		json_out_null(j, "process");
	json_word(j, "job", o->job);
	json_out_bool(j, "failed", c->view.failed);
	json_out_end(j);
}

static void print_json(const struct status *s)
{
	uint64_t missing = s->shard_count - s->done;
	struct json_out j;

	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "state", s->sealed ? "sealed" : missing ? "unfinished" : "complete");
	json_out_u64(&j, "shard_count", s->shard_count);
	json_out_u64(&j, "done", s->done);
	json_out_u64(&j, "missing", missing);
	json_out_u64(&j, "running", s->running);
	if (s->pace_ns) {
		json_out_double(&j, "seconds_per_shard", (double)s->pace_ns / 1e9);
		json_out_double(&j, "seconds_left", (double)s->pace_ns / 1e9 * (double)missing);
	} else {
		json_out_null(&j, "seconds_per_shard");
		json_out_null(&j, "seconds_left");
	}
	json_out_string(&j, "retry_list", s->missing.bytes ? s->missing.data : "");
	json_out_array(&j, "claims");
	for (uint64_t i = 0; i < s->claim_count; i++)
		json_claim(&j, &s->claims[i]);
	json_out_end(&j);
	json_out_end(&j);
	json_out_finish(&j); /* what failed is found by finish_stdout() */
}

static void print_line(const struct status *s, const char *rest)
{
	escape_write(stdout, s->dir, strlen(s->dir), ESCAPE_TALK);
	printf(": %s\n", rest);
}

/* A word of another process, which may be anything. */
static void print_word(const char *before, const char *word)
{
	if (!*word)
		return;
	fputs(before, stdout);
	escape_write(stdout, word, strlen(word), ESCAPE_TALK);
}

static void print_claim(const struct status_claim *c)
{
	const struct claim_owner *o = &c->view.owner;

	printf("%s: %" PRIu64, c->view.failed ? "could not be built" : "claimed", c->first);
	if (c->last > c->first)
		printf("-%" PRIu64, c->last);
	if (o->pid)
		printf(", by process %" PRIu64, o->pid);
	print_word(o->pid ? " on " : ", on ", o->host);
	print_word(", job ", o->job);
	putchar('\n');
}

static void print_status(const struct status *s)
{
	uint64_t missing = s->shard_count - s->done;
	char words[160], pace[HUMAN_CHARS], left[HUMAN_CHARS];

	if (s->sealed) {
		snprintf(words, sizeof(words), "sealed, %" PRIu64 " shard%s", s->shard_count,
			 s->shard_count == 1 ? "" : "s");
		print_line(s, words);
		return;
	}
	snprintf(words, sizeof(words), "%" PRIu64 " of %" PRIu64 " shard%s done%s", s->done, s->shard_count,
		 s->shard_count == 1 ? " is" : "s are", missing ? "" : "; not sealed yet");
	print_line(s, words);
	if (!missing)
		return;
	printf("missing: %s\n", s->missing.data);
	for (uint64_t i = 0; i < s->claim_count && i < CLAIMS_SHOWN_MAX; i++)
		print_claim(&s->claims[i]);
	if (s->claim_count > CLAIMS_SHOWN_MAX)
		printf("... and %" PRIu64 " claims more; --json lists them all\n", s->claim_count - CLAIMS_SHOWN_MAX);
	if (s->pace_ns)
		printf("%s a shard, so about %s left\n", human_duration(pace, s->pace_ns),
		       human_duration(left, s->pace_ns * missing));
}

static int status(const struct cli_args *args)
{
	const struct status_options *o = args->options;
	struct status s = {.dir = o->out};
	int rc;

	if (o->json && o->retry_list)
		return fail(EXIT_USAGE, "--json and --retry-list cannot be given together; the document of --json "
					"has the list as `retry_list`");
	rc = examine(&s, o->spool);
	if (rc == EXIT_DONE && o->json)
		print_json(&s);
	else if (rc == EXIT_DONE && !o->retry_list)
		print_status(&s);
	else if (rc == EXIT_DONE && s.missing.bytes)
		puts(s.missing.data);
	text_free(&s.missing);
	free(s.claims);
	return rc;
}

const struct cli_verb cmd_status = {
	.name = "status",
	.positionals = positional,
	.options = {options},
	.options_bytes = sizeof(struct status_options),
	.run = status,
};
