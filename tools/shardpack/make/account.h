/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - what became of every input
 *
 * Each input ends as exactly one of: written, skipped, quarantined, failed.  Failed are the inputs
 * that are in no published shard: bad inputs when the policy is to fail, inputs that could not be
 * read, good inputs whose shard was held back because of these, and inputs that the run did not
 * reach.  The line for people counts the last two as not done.
 *
 * Some written inputs may be accepted ones: they are damaged in a way that --accept allows.
 */
#ifndef SHARD_CONVERT_ACCOUNT_H
#define SHARD_CONVERT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_pack.h"
#include "tools/shardpack/make/fit_count.h"

struct cli_amount;

enum problem_how {
	PROBLEM_SKIPPED = SHARD_SKIPPED,
	PROBLEM_QUARANTINED = SHARD_QUARANTINED,
	PROBLEM_BAD,	    /* the policy is to fail */
	PROBLEM_UNREADABLE, /* whatever the policy */
	PROBLEM_ACCEPTED,   /* it became a record */
	PROBLEM_FIRST,	    /* so did the first of its frames or pages */
};

struct problem {
	uint64_t ordinal;
	uint32_t reason; /* enum shard_miss_reason; 0 if unreadable */
	enum problem_how how;
	char *message;
};

struct problem_list {
	struct problem *item; /* ascending by ordinal after account_sort() */
	uint64_t count, capacity;
};

/* Values of each field that are NaN or infinite, of published records. */
struct not_finite { /* start it zeroed */
	uint64_t nan[SHARD_FIELDS_MAX], infinite[SHARD_FIELDS_MAX];
	uint64_t unknown; /* records of which nobody knows this any more */
};
void not_finite_add(struct not_finite *to, const struct not_finite *more);

struct account {				/* start it zeroed */
	uint64_t input_count;			/* of the plan, or of the part that is built */
	uint64_t written, skipped, quarantined; /* in published shards: the rest is failed */
	uint64_t bad;				/* verdicts on bytes, whatever came of them */
	uint64_t unreadable;
	uint64_t changed;		     /* of these: not the file that was planned */
	uint64_t gone;			     /* of these: there was a file */
	uint64_t vanished;		     /* of those that are bad: left out, because there was a file */
	uint64_t accepted;		     /* of the written ones */
	struct fit_count fit;		     /* likewise */
	struct not_finite not_finite;	     /* likewise */
	struct problem_list problems;	     /* inputs that are no records */
	struct problem_list accepted_inputs; /* also those of shards that were not published */
	struct problem_list first_inputs;    /* likewise: only their first frame or page is packed */
	bool firsts_unknown;		     /* the dataset was there already, and does not say */
	uint64_t shown, accepted_shown;	     /* lines printed so far */
};

#define PROBLEMS_SHOWN_MAX 20

/* What becomes of a bad input.  One that vanished leaves nothing that quarantine could keep. */
enum problem_how account_how(uint32_t on_error, uint32_t reason);

/* Remember a problem; the message is copied.  Returns the exit code. */
int account_problem(struct account *a, uint64_t ordinal, uint32_t reason, enum problem_how how, const char *message);

/* Is this miss possible in a plan of so many inputs?  It comes from a file, which may be wrong. */
bool account_miss_fits(const struct shard_miss *miss, uint64_t input_count);

/* A shard has its final name: its inputs are done.  `accepted` of its records are damaged. */
void account_published(struct account *a, uint64_t records, uint64_t accepted, uint64_t skipped, uint64_t quarantined);

/* Print a problem, if not too many were: then one line says so. */
void account_show(struct account *a, const char *source, const char *path, const char *message);
void account_show_accepted(struct account *a, const char *source, const char *path, const char *message);

void account_sort(struct account *a);

/*
 * Are there more bad inputs than `max` allows?  Percents are of the inputs.  No limit if max is
 * NULL.  Says so, with the input that was looked at last and how many are planned, and returns the
 * exit code.
 */
int account_check_bad(const struct account *a, const struct cli_amount *max, uint64_t ordinal, uint64_t planned);

/* Inputs that are not written, skipped or quarantined; 0 also if those are more than all. */
uint64_t account_failed(const struct account *a);

/*
 * Those of account_failed() with which nothing is wrong, as far as is known: their shard was not
 * published, or the run did not come to them.
 */
uint64_t account_not_done(const struct account *a);

/*
 * The run itself went well; did the inputs?  Returns the exit code, and says why.  `anew` says how
 * to pack all anew.
 */
int account_judge(const struct account *a, bool bad_fails, const char *anew);

void account_free(struct account *a);

#endif
