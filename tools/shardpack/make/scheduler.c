/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scheduler.c - which worker of how many this process is, as the environment says
 *
 * A variable that is empty counts as one that is not there, and so does Grid Engine's "undefined".
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"

#define ARRAYS 6
#define RANKS  4
#define REMEDY "unset it, or say with --part k/n --steal where this worker begins"

/* Task ids go from `first` to `last` in steps.  NULL: the scheduler does not say. */
struct array_names {
	const char *id, *first, *last, *step, *count, *job, *job_else;
	uint64_t lowest; /* of the ids, where `first` is not known; below it there is no array */
};

static const struct array_names array_names[ARRAYS] = {
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP",
	 "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", 0},
	{"SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", NULL, "JOB_ID", NULL, 1},
	{"LSB_JOBINDEX", NULL, "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP", NULL, "LSB_JOBID", NULL, 1},
	{"PBS_ARRAY_INDEX", NULL, NULL, NULL, NULL, "PBS_JOBID", NULL, 0},
	{"PBS_ARRAYID", NULL, NULL, NULL, NULL, "PBS_JOBID", NULL, 0},
	{"JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL, NULL, NULL, 0},
};

/* The launcher that is nearest to the process comes first: mpirun is itself started by srun. */
static const struct {
	const char *rank, *size;
	bool needs_size; /* without it the variable says nothing: a batch script has SLURM_PROCID 0 */
} rank_names[RANKS] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false},
	{"PMIX_RANK", NULL, false},
	{"PMI_RANK", "PMI_SIZE", false},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true},
};

/* A worker's number among some; count 0: nobody says among how many. */
struct share {
	const char *name; /* NULL: there is none */
	uint64_t value;	  /* as the variable has it */
	uint64_t number, count;
	uint64_t first, last; /* of arrays; last 0: unknown */
};

/* *there is false if there is no such variable. */
static int number_of(char *(*get)(const char *), const char *name, uint64_t *value, bool *there)
{
	const char *text = name ? get(name) : NULL;

	*there = text && *text && strcmp(text, "undefined") != 0;
	if (!*there ||
	    (strlen(text) < 10 && text[strspn(text, "0123456789")] == '\0' && sscanf(text, "%" SCNu64, value) == 1))
		return EXIT_DONE;
	return fail(EXIT_USAGE, "%s: is '%s', and must be a number below 10^9; " REMEDY, name, text);
}

static int array_share(char *(*get)(const char *), const struct array_names *n, struct share *out)
{
	uint64_t id = 0, first = n->lowest, last = 0, step = 1, count = 0;
	bool there, has_first, has_last, has_step, has_count;
	int rc = number_of(get, n->id, &id, &there);

	/* LSF says 0 for a job that is not an array. */
	if (rc || !there || (!n->first && id < n->lowest))
		return rc;
	if ((rc = number_of(get, n->first, &first, &has_first)) || (rc = number_of(get, n->last, &last, &has_last)) ||
	    (rc = number_of(get, n->step, &step, &has_step)) || (rc = number_of(get, n->count, &count, &has_count)))
		return rc;
	*out = (struct share){.name = n->id, .value = id, .first = first};
	if (id < first || id < n->lowest)
		return fail(EXIT_USAGE, "%s: is %" PRIu64 ", but the first task is %" PRIu64 "; " REMEDY, n->id, id,
			    first < n->lowest ? n->lowest : first);
	if (has_last && id > last)
		return fail(EXIT_USAGE, "%s: is %" PRIu64 ", but %s is %" PRIu64 "; " REMEDY, n->id, id, n->last, last);
	if ((has_step && !step) || (has_count && !count))
		return fail(EXIT_USAGE, "%s: is 0, and must be at least 1; " REMEDY,
			    has_step && !step ? n->step : n->count);
	out->number = (id - first) / step;
	out->last = has_last ? last : 0;
	out->count = has_last ? (last - first) / step + 1 : 0;
	if (has_last && has_count && count > out->count)
		return fail(EXIT_USAGE,
			    "%s: is %" PRIu64 ", but there are only %" PRIu64 " tasks from %" PRIu64 " to %" PRIu64
			    "; " REMEDY,
			    n->count, count, out->count, first, last);
	return EXIT_DONE;
}

/* Two variables for one thing must agree. */
static int settle(struct share *kept, const struct share *other)
{
	if (!other->name)
		return EXIT_DONE;
	if (!kept->name) {
		*kept = *other;
		return EXIT_DONE;
	}
	if (kept->value != other->value)
		return fail(EXIT_USAGE,
			    "%s: is %" PRIu64 ", but %s is %" PRIu64 "; unset one of them, or say with "
			    "--part k/n --steal where this worker begins",
			    kept->name, kept->value, other->name, other->value);
	if (!kept->count && other->count)
		*kept = *other;
	return EXIT_DONE;
}

static int find_array(char *(*get)(const char *), struct share *array, char *job)
{
	int rc = EXIT_DONE;

	for (unsigned i = 0; !rc && i < ARRAYS; i++) {
		const struct array_names *n = &array_names[i];
		struct share share = {0};
		const char *name = n->job, *text;

		rc = array_share(get, n, &share);
		if (!rc)
			rc = settle(array, &share);
		if (!share.name || !name)
			continue;
		text = get(name);
		if ((!text || !*text) && n->job_else)
			text = get(name = n->job_else);
		if (text && *text) /* "1234[5].server" is task 5 of job 1234 */
			snprintf(job, SCHEDULER_JOB_BYTES, "%s %.*s", name, (int)strcspn(text, "["), text);
	}
	return rc;
}

static int find_rank(char *(*get)(const char *), struct share *out)
{
	for (unsigned i = 0; i < RANKS; i++) {
		const char *rank_name = rank_names[i].rank, *size_name = rank_names[i].size;
		uint64_t rank = 0, size = 0;
		struct share share;
		bool there, has_size;
		int rc = number_of(get, rank_name, &rank, &there);

		if (!rc)
			rc = number_of(get, size_name, &size, &has_size);
		if (rc)
			return rc;
		if (!there || (rank_names[i].needs_size && !has_size))
			continue;
		if (has_size && rank >= size)
			return fail(EXIT_USAGE, "%s: is %" PRIu64 ", but %s is %" PRIu64 "; " REMEDY, rank_name, rank,
				    size_name, size);
		/* mpirun inherits what srun says of the process that started it */
		if (out->name && rank_names[i].needs_size)
			continue;
		share = (struct share){.name = rank_name, .value = rank, .number = rank, .count = has_size ? size : 0};
		rc = settle(out, &share);
		if (rc)
			return rc;
	}
	return EXIT_DONE;
}

/* Spread numbers that follow each other, where nobody says how many there are. */
static uint64_t scatter(uint64_t x)
{
	x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (x ^ x >> 32) & UINT32_MAX;
}

static void describe(struct scheduler *s, const struct share *array, const struct share *rank)
{
	char of_array[SCHEDULER_WORDS_BYTES / 2] = "", of_rank[SCHEDULER_WORDS_BYTES / 2] = "";

	if (array->name && array->last)
		snprintf(of_array, sizeof(of_array), "%s %" PRIu64 " of %" PRIu64 "-%" PRIu64, array->name,
			 array->value, array->first, array->last);
	else if (array->name)
		snprintf(of_array, sizeof(of_array), "%s %" PRIu64, array->name, array->value);
	if (rank->name && rank->count)
		snprintf(of_rank, sizeof(of_rank), "%s %" PRIu64 " of %" PRIu64, rank->name, rank->value, rank->count);
	else if (rank->name)
		snprintf(of_rank, sizeof(of_rank), "%s %" PRIu64, rank->name, rank->value);
	snprintf(s->words, sizeof(s->words), "%s%s%s", of_array, array->name && rank->name ? ", " : "", of_rank);
}

int scheduler_find(struct scheduler *s, char *(*get)(const char *name))
{
	struct share array = {0}, rank = {0};
	int rc;

	*s = (struct scheduler){.count = 1};
	rc = find_array(get, &array, s->job);
	if (!rc)
		rc = find_rank(get, &rank);
	if (!rc && rank.count == 1) /* a shell in an allocation, or one process alone */
		rank = (struct share){0};
	s->found = !rc && (array.name || rank.name);
	if (!s->found)
		return rc;
	describe(s, &array, &rank);
	if ((array.name && !array.count) || (rank.name && !rank.count)) {
		s->number = scatter(array.number * 1000003 + rank.number);
		s->count = UINT64_C(1) << 32;
	} else {
		uint64_t ranks = rank.name ? rank.count : 1;

		s->number = array.number * ranks + rank.number;
		s->count = (array.name ? array.count : 1) * ranks;
	}
	return EXIT_DONE;
}

uint64_t scheduler_begin(const struct scheduler *s, uint64_t shard_count)
{
	/* number < count: below 10^18 both, so that no product of them fits */
	return (uint64_t)((double)s->number / (double)s->count * (double)shard_count) % shard_count;
}

void scheduler_anywhere(struct scheduler *s, uint64_t seed)
{
	s->found = true;
	s->number = scatter(seed);
	s->count = UINT64_C(1) << 32;
}
