/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make.h - from a plan to shards, and from shards to a dataset
 *
 * The job comes first, and then, file by file, what becomes of inputs, how shards are made of them,
 * how an input becomes a record, and what is written beside the shards.  Each file opens with what it
 * is for.
 *
 * A function that returns `int` says why it fails, and returns the exit code, unless it says otherwise.
 * Structs that have no open function start zeroed.
 */
#ifndef SHARD_SHARDPACK_MAKE_MAKE_H
#define SHARD_SHARDPACK_MAKE_MAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/base/thread.h"
#include "shard.h"
#include "shard_pack.h"
#include "tools/common/cli.h"
#include "tools/common/files.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

struct sandbox;
struct source_times;
struct source_files;
struct workers_options;

/* ---- the job: the plan, and where things are ---- */

struct account;
struct receipt_files;
struct scheduler;

struct job { /* all const while it runs, but for what `account` and `receipts` point to */
	const struct plan *plan;
	struct shard_schema schema; /* of the plan's recipe */
	const char *out_dir;
	char state_dir[4400]; /* OUT/.shardpack */
	const char *source;   /* for messages, and to write down */
	int source_fd;	      /* -1 if the inputs are not at hand */
	/* the plan's files; NULL if it has none, or the inputs are not at hand */
	const struct source_files *source_files;
	const char *quarantine;		  /* NULL unless that is the policy */
	struct sandbox *sandbox;	  /* of images; or NULL */
	const struct source_times *times; /* when sources were written; NULL: not compared */
	const char *remedy;		  /* for messages: how this command makes all of the dataset again */
	unsigned worker_count;
	bool read_back;			  /* each shard before it gets its name; one that was not is verified */
	bool verify_all;		  /* shards that are there are read once more, whatever receipts say */
	bool leave_vanished;		  /* files that were there for the plan and are gone */
	bool look_only;			  /* no dataset can come of it: find all that is bad, write nothing */
	bool again;			  /* they are built once more, and must become the same */
	struct cli_part part;		  /* shards s with s % count == idx */
	const struct scheduler *worker;	  /* shards are claimed, from its place on; NULL: all of `part` are ours */
	bool exif_said;			  /* the user has typed whether images are turned upright */
	bool no_wait;			  /* end, even if shards that others have claimed are missing */
	const struct cli_amount *max_bad; /* or NULL */
	struct receipt_files *receipts;	  /* to which this process adds */
	struct account *account;
};

/*
 * ---- account.c ----
 *
 * Three structs go from the source to the report.  A scan says in the plan what is wrong with an
 * input before it is read: struct bad_input, of plan/plan.h.  A verdict is what came of reading
 * and decoding it.  If an input is not a record, or there is something to tell of its record, that
 * becomes a problem: the account and the reports list these, and receipts keep them.
 *
 * Each input ends as exactly one of: written, skipped, quarantined, failed.  Failed are the inputs
 * that are in no published shard: bad inputs when the policy is to fail, inputs that could not be
 * read, good inputs whose shard was held back because of these, and inputs that the run did not
 * reach.  The line for people counts the last two as not done.
 *
 * Some written inputs may be accepted ones: they are damaged in a way that --accept allows.
 */

/*
 * Two kinds of failure are kept apart, because only one may be skipped.  A verdict on the bytes
 * (not an image, damaged) is the same each time and belongs to the dataset.  A file that cannot be
 * read, or is not the one that was planned, says nothing about the data.
 */
enum outcome {
	OUTCOME_RECORD,	  /* there is a record */
	OUTCOME_BAD,	  /* `reason` and `message`: the bytes cannot be used */
	OUTCOME_FAILED,	  /* `message`: the input could not be read */
	OUTCOME_CHANGED,  /* `message`: it is not the one that was planned */
	OUTCOME_VANISHED, /* `message`: the file is gone, and the folder that held it is there */
	OUTCOME_OTHER,	  /* `message`: another build made the plan, and would read this otherwise */
	OUTCOME_STOP,	  /* `message`: no memory, or no quarantine; going on makes no sense */
};

struct verdict {
	enum outcome outcome;
	uint32_t reason;   /* enum shard_miss_reason, of OUTCOME_BAD; of a record 0, or which damage was accepted */
	char message[320]; /* why; empty if there is nothing to say */
	char first[200];   /* of a record: a file has more frames or pages than are packed; else empty */
	uint32_t dropped;  /* of a record: what its images have, and it does not, bits 1 << enum decode_dropped */
};

/* Returns false, for functions that say so when there is not a record. */
bool verdict_set(struct verdict *v, enum outcome outcome, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Take over a decoder's verdict.  True if it was OK.  Of accepted damage the first one stays,
 * and of more frames, too; what is dropped adds up.
 */
bool verdict_of_decoder(struct verdict *v, enum decode_status status, const struct decode_verdict *said);

/*
 * None of this is an error, and all of it is easily a mistake in the options: an image that was
 * made larger, or stands in a border of zeros; a box of which the crop left nothing, or less than a
 * pixel; an image that lies on its side, or has an alpha channel, or other colours than sRGB; an input
 * without a value for a field that may have none; a field that says the same everywhere.
 */

/* Of a field that is a list or a mask, by its number in the recipe. */
struct fit_field {
	uint64_t records;     /* 0: the rest says nothing */
	uint64_t without;     /* of these: their inputs have no value, which `optional` allows */
	uint64_t first;	      /* the first of these inputs, in the order of the source */
	uint32_t least, most; /* of the others: of a list its length, of a mask its values */
};

struct fit_count {
	uint64_t images, enlarged, padded;	   /* of records */
	uint64_t boxes, empty_boxes, narrow_boxes; /* narrow: an area, but a side below a pixel */
	uint64_t dropped[DROPPED_COUNT];	   /* records with an image whose file has this */
	uint64_t dropped_first[DROPPED_COUNT];	   /* if there is one, the first one's ordinal */
	struct fit_field field[SHARD_FIELDS_MAX];
	uint64_t unknown; /* records of which nobody knows this any more */
};

void fit_count_add(struct fit_count *to, const struct fit_count *more);

/* An image of this size, upright, before the resize. */
void fit_count_image(struct fit_count *to, const struct transform_options *opt, uint32_t width, uint32_t height);

/* What was dropped of the images of a record: bits 1 << enum decode_dropped. */
void fit_count_dropped(struct fit_count *to, uint32_t dropped, uint64_t ordinal);

/* Boxes of a record, XYXY. */
void fit_count_boxes(struct fit_count *to, const float *boxes, uint64_t count);

/* A record whose input has no value for a field; one with this number of rows; one with this mask. */
void fit_count_without(struct fit_field *to, uint64_t input_idx);
void fit_count_length(struct fit_field *to, uint32_t length);
void fit_count_mask(struct fit_field *to, const struct shard_field *f, const uint8_t *pixels);

/* How many records have a value. */
uint64_t fit_count_with(const struct fit_field *f);

/* Values of each field that are NaN or infinite, of published records. */
struct not_finite {
	uint64_t nan[SHARD_FIELDS_MAX], infinite[SHARD_FIELDS_MAX];
	uint64_t unknown; /* records of which nobody knows this any more */
};
void not_finite_add(struct not_finite *to, const struct not_finite *more);

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
	const char *message;
};

struct problem_list {
	struct problem *item; /* ascending by ordinal after account_sort() */
	uint64_t count, capacity;
};

/* Is it possible in a plan with this number of inputs?  It comes from a file, which may be wrong. */
bool problem_fits(const struct problem *p, uint64_t input_count);

struct account {
	uint64_t input_count;			/* of the plan, or of the part that is built */
	uint64_t written, skipped, quarantined; /* in published shards: the rest is failed */
	uint64_t bad;				/* verdicts on bytes, whatever came of them */
	uint64_t unreadable;
	uint64_t changed;		     /* of these: not the file that was planned */
	uint64_t gone;			     /* of these: there was a file */
	uint64_t vanished;		     /* of the bad ones: left out, because there was a file */
	uint64_t accepted;		     /* of the written ones */
	struct fit_count fit;		     /* likewise */
	struct not_finite not_finite;	     /* likewise */
	struct problem_list problems;	     /* inputs that are not records */
	struct problem_list accepted_inputs; /* also those of shards that were not published */
	struct problem_list first_inputs;    /* likewise: only their first frame or page is packed */
	bool firsts_unknown;		     /* the dataset was there already, and does not say */
	uint64_t shown, accepted_shown;	     /* lines printed so far */
};

#define PROBLEMS_SHOWN_MAX 20

/* What becomes of a bad input.  One that vanished leaves nothing that quarantine could keep. */
enum problem_how account_how(uint32_t on_error, uint32_t reason);

/* Remember a problem; its message is copied. */
void account_add(struct account *a, const struct problem *p);

/* Print it, and the path of its input.  Behind many of them one line says that the others are only counted. */
void account_show(const struct job *job, const char *path, const struct problem *p);

void account_sort(struct account *a);

/*
 * Are there more bad inputs than `max` allows?  Percents are of the inputs.  No limit if max is
 * NULL.  Says so, with the input that was looked at last and how many are planned, and returns the
 * exit code.
 */
int account_check_bad(const struct account *a, const struct cli_amount *max, uint64_t ordinal, uint64_t planned);

/* Inputs that are not written, skipped or quarantined; 0 also if these are more than all. */
uint64_t account_failed(const struct account *a);

/*
 * The ones of account_failed() with which nothing is wrong, as far as is known: their shard was not
 * published, or the run did not come to them.
 */
uint64_t account_not_done(const struct account *a);

/*
 * The run itself went well; did the inputs?  Returns the exit code, and says why.  `remedy` is
 * that of a job.
 */
int account_judge(const struct account *a, bool bad_fails, const char *remedy);

void account_free(struct account *a);

/*
 * Inputs that the plan knows to be bad, before any of them is converted.
 *
 * Both functions print them in source order, as many as are shown of bad inputs, and return the
 * exit code.
 */

/*
 * Bad inputs are an error, so no dataset can come of the plan.  Enter the ones that are known and look
 * at all others, so that everything is said at once; write nothing.  `times` is that of a job.
 */
int known_bad_look(const struct job *job, const struct source_times *times);

/* Of a plan that is not built now: enter them.  If they are an error, say so and set *told. */
int known_bad_judge(const struct job *job, bool *told);

/*
 * A folder that mirrors the source: bad files under their own relative paths, and
 * quarantine.jsonl, which says of each what is wrong with it.
 */

/*
 * Refuse a folder that holds what another plan left out, or something else.  It has the digest of
 * its plan from the first run until that plan is sealed, so runs and parts of one plan share it.
 */
int quarantine_check(const char *dir, const struct plan *plan);

/* The same, and make the folder if it is not there; its parent must be.  `out` is its absolute path. */
int quarantine_open(char **out, const char *dir, const struct plan *plan);

/* The plan is sealed, so from now on its quarantine is in the way of every run. */
void quarantine_close(const char *dir, const struct plan *plan);

/*
 * Copy a file into it.  Any thread.  A file that is there already with the same bytes is
 * fine: an earlier run was interrupted.  False, and `message` says why, if it cannot be.
 */
bool quarantine_keep(const char *quarantine, const char *path, const void *bytes, size_t size, char *message,
		     size_t message_bytes);

/* Write quarantine.jsonl, in ordinal order. */
int quarantine_list(const char *quarantine, const struct plan *plan, const struct account *account);

/*
 * ---- output.c ----
 *
 *   OUT/00000.shard ...       published shards
 *   OUT/dataset.manifest      written last: with it the dataset is sealed
 *   OUT/dataset.sources       when each file of the source was written; input.h
 *   OUT/.shardpack/plan       the plan of the dataset
 *   OUT/.shardpack/sources    the same as dataset.sources; sealing moves it there
 *   OUT/.shardpack/source     the folder of the inputs; for `shardpack build`
 *   OUT/.shardpack/quarantine the folder for bad inputs; for `shardpack build`
 *   OUT/.shardpack/exif       there if --exif was typed; for `shardpack build`
 *   OUT/.shardpack/decoders   of images: the libraries of the process that made the plan
 *   OUT/.shardpack/receipts-00000 ...
 *   OUT/.shardpack/claim-00000 ...  which process builds a shard; claim.c
 *
 * Times, the two folders, and that an option was typed, are not part of the plan.  Sealing removes
 * .shardpack.  Only the files in OUT decide which work is left, so any process can continue it.
 */

enum output_state {
	OUTPUT_NEW,	/* absent, empty, or given up before there was a plan */
	OUTPUT_STARTED, /* this plan, not sealed */
	OUTPUT_SEALED,	/* this plan, done */
	OUTPUT_OTHER,	/* a dataset, sealed or not, but of another plan */
	OUTPUT_FOREIGN, /* something that shardpack did not make */
};

#define OUTPUT_WHY_BYTES 1536

/* Look, and touch nothing.  `why` names what is OTHER or FOREIGN. */
int output_examine(const char *out_dir, const struct plan *plan, enum output_state *state, char why[OUTPUT_WHY_BYTES]);

/* Set job->out_dir and what follows from it. */
int output_set_dir(struct job *job, const char *out_dir);

/*
 * Make OUT and put the plan into it, durably.  Put files beside the plan: `source`, an absolute
 * path; the times in `now`, unless there are some already; and that --exif was typed, if it was.
 * Fails if another process puts in another plan first.
 */
int output_begin(const struct job *job, const char *source, const struct source_times *now);

/*
 * Are the sources still as old as when the plan or the sealed dataset in OUT was made?  `now` is
 * their present state.  If the answer is no, or nothing was written down and there are shards, this says so
 * and returns EXIT_MISMATCH.
 */
int output_check_sources(const struct job *job, const struct source_times *now);

/* The same of another folder that is not sealed, without a sentence. */
int output_same_sources(const char *out_dir, const struct plan *plan, const struct source_times *now, bool *same);

/* Open what was written down beside the plan.  If there is nothing, that is EXIT_MISMATCH. */
int output_open_times(const struct job *job, struct source_times *out);

/*
 * Read the plan that is in OUT, to the shelf that `plan` has, job->exif_said, and the places beside
 * it; NULL where there are none, else to be freed.  *sealed if OUT is a dataset that has no plan
 * any more: then nothing was read.
 */
int output_load(struct job *job, struct plan *plan, char **source, char **quarantine, bool *sealed);

/* Read plan->decoders of what is in OUT. */
int output_load_decoders(const struct job *job, struct plan *plan);

/* Was --exif typed for the plan that is in OUT? */
bool output_exif_said(const struct job *job);

/* OUT is sealed: move the times of the sources beside the manifest, unless that is done. */
int output_keep_times(const struct job *job);

/* OUT is sealed: remove .shardpack, and temporary files of processes that have exited. */
int output_clear_state(const struct job *job);

/*
 * Undo output_begin(), if OUT holds nothing else.  Also remove OUT itself if `made`, and its shards
 * if `all_empty`, which means that each is known to have no records.  Failures are ignored.
 */
void output_give_up(const struct job *job, bool made, bool all_empty);

/* Does OUT hold the sealed dataset of this plan, of this process or of another one? */
bool output_is_sealed(const char *out_dir, const struct plan *plan);

/* A dataset that is built beside another one, and put in its place at once. */

/* Where the new one is built: `.NAME.new` beside OUT.  To be freed. */
char *replace_work_dir(const char *out_absolute);

/*
 * Get the place ready: what an earlier, other --replace left there unfinished is removed, what this
 * plan left there of the sources as they are `now` stays.
 */
int replace_prepare(const char *work_dir, const struct plan *plan, const struct source_times *now);

/*
 * Exchange the two names and remove the old dataset, which is then at `work_dir`.  A reader
 * sees the old one or the new one.  Where the file system cannot exchange names, there is
 * a moment without OUT, and after a kill in it the old one lies at `.NAME.new.old`.
 */
int replace_swap(const char *out_absolute, const char *work_dir);

/*
 * Which shards of a plan have their final names, found by one look at the folder.  A name appears
 * only when its shard is complete, so the names say what is left to do.  What is in the files is for
 * published_find() and for `seal`.
 */
struct shard_list {
	uint64_t shard_count, there_count;
	bool *there; /* [shard_count] */
};

/*
 * List the folder, again if it was listed before: then shards that came meanwhile are added.  Shards
 * that were removed meanwhile stay in the list: a build counts on no more work than it saw at
 * first, and `seal` looks at all of them.
 */
int shard_list_look(struct shard_list *l, const char *out_dir, uint64_t shard_count);
void shard_list_free(struct shard_list *l);

/*
 * The shards that are missing, as job schedulers write a list: "0,17,203-210".  Ends with ",..."
 * behind the range that makes it longer than `bytes_max`.
 */
void shard_list_missing(const struct shard_list *l, size_t bytes_max, struct text *out);

/*
 * How long one shard takes the machines together, in nanoseconds: the mean time between the last
 * shards that were written, at most a hundred.  0 if fewer than two are there, or times are equal.
 */
uint64_t shard_list_pace(const struct shard_list *l, const char *out_dir);

/*
 * ---- space.c ----
 *
 * Records have a fixed size, so this is arithmetic: exact to the byte for raw groups when no
 * input is left out, and the most it can be for compressed ones.
 */

/* Bytes of the shard's file. */
uint64_t space_of_shard(const struct job *job, uint64_t shard_idx, uint64_t provenance_bytes);

/* Of all shards with todo[] set (NULL: all), and of what lies beside them for a while. */
uint64_t space_needed(const struct job *job, const bool *todo);

/* EXIT_DONE if that much can be written to the output folder; else one line and EXIT_IO. */
int space_check(const struct job *job, uint64_t needed_bytes);

/* ---- build.c ---- */

/*
 * Build this part of the plan.  What became of every input is in job->account afterwards,
 * that of earlier runs included.  Returns the exit code; whatever it is, a shard is either
 * complete under its name or not there, and running again continues.
 */
int build_run(const struct job *job);

/*
 * ---- scheduler.c ----
 *
 * Job arrays (Slurm, Grid Engine, LSF, PBS, Kubernetes) and ranks within a job (srun, Open MPI,
 * PMI) are combined.  The answer only says at which shard a worker begins, so any list of tasks
 * will do.
 */

#define SCHEDULER_WORDS_BYTES 256
#define SCHEDULER_JOB_BYTES   96

struct scheduler {
	bool found;			   /* there is an array, or more ranks than one; else this is all */
	uint64_t number, count;		   /* begin at this share of the shards: number < count */
	char words[SCHEDULER_WORDS_BYTES]; /* what was taken: "SLURM_ARRAY_TASK_ID 3 of 0-9" */
	char job[SCHEDULER_JOB_BYTES];	   /* the job without its tasks, "SLURM_ARRAY_JOB_ID 1234"; empty if unknown */
};

/*
 * Look at the environment through `get`, which is getenv() or a test's own.  What contradicts
 * itself is EXIT_USAGE, and a sentence.
 */
int scheduler_find(struct scheduler *s, char *(*get)(const char *name));

/* A worker to which nobody gave a place gets one by chance. */
void scheduler_anywhere(struct scheduler *s, uint64_t seed);

/* The first of `shard_count` for this worker. */
uint64_t scheduler_begin(const struct scheduler *s, uint64_t shard_count);

/*
 * ---- claim.c ----
 *
 *   claim 1 beat 0000000017 works
 *   nonce 9f86d081884c7d65 host node17 boot 5b1c... space pid%3A... pid 4711 start 123456 job -
 *
 * Words are encoded in the file, where one that is unknown is "-".
 *
 * Claims only keep work from being done twice: shards are published whole, and have the same bytes
 * whichever process builds them.  So a lost race costs time only.
 *
 * The beat is a counter that the owner rewrites in place, through the descriptor that it made the
 * file with.  After a takeover that leads to a file without a name, so an owner that was only
 * asleep cannot disturb the new one.  A claim of which nothing changes for some minutes of the
 * observer's own clock is stale; the clocks of two machines are never compared.
 */

#define CLAIM_NONCE_BYTES 17
#define CLAIM_WORD_BYTES  96

/* In nanoseconds. */
struct claim_times {
	uint64_t beat;	 /* how often an owner beats */
	uint64_t stale;	 /* no beat for this time; more than `hidden` */
	uint64_t hidden; /* for how long a network file system may hide, in its caches, what others did */
	uint64_t look;	 /* how often a worker that waits looks, give or take a half */
	uint64_t say;	 /* how often it says which owners it waits for */
};

extern const struct claim_times claim_times;

/* The process that made a claim.  Words are as users know them, and empty if unknown. */
struct claim_owner {
	char host[CLAIM_WORD_BYTES], job[CLAIM_WORD_BYTES];
	char boot[CLAIM_WORD_BYTES], space[CLAIM_WORD_BYTES]; /* of the kernel, and its space of process numbers */
	uint64_t pid, start;				      /* start: in ticks after boot, 0 if unknown */
};

/* What is in a claim's file.  One that cannot be read as one has no nonce, and goes stale. */
struct claim_view {
	bool there, failed;
	char nonce[CLAIM_NONCE_BYTES];
	uint64_t beat;
	struct claim_owner owner;
};

/* What was seen of a claim, and since when. */
struct claim_watch {
	char nonce[CLAIM_NONCE_BYTES];
	uint64_t beat, since_ns; /* since_ns 0: none was seen */
};

/* One that this process holds. */
struct claim {
	int fd; /* -1: none */
	char nonce[CLAIM_NONCE_BYTES];
	uint64_t beat;
};

/* The file for a shard, in FILES_PATH_BYTES. */
int claim_path(char *out, const char *state_dir, uint64_t shard_idx);

/*
 * Set claimed[shard_idx] where there is a claim, by one look at the folder.
 */
int claim_list(const char *state_dir, uint64_t shard_count, bool *claimed);

/* This process, in a job without its tasks, or "". */
void claim_self(struct claim_owner *self, const char *job);

/* Read it through a fresh open. */
int claim_look(const char *path, struct claim_view *v);

/* Is it of this machine, and of a process that has exited? */
bool claim_is_dead(const struct claim_view *v, const struct claim_owner *self);

/* Has its owner shown no sign of life since claim_is_stale() was asked before, or is there none? */
bool claim_is_silent(const struct claim_watch *w, const struct claim_view *v);

/*
 * Has it not changed for too long, by this process's own clock?  Or has it been gone so long that
 * what its owner published on another machine must be seen by now?
 */
bool claim_is_stale(struct claim_watch *w, const struct claim_view *v);

/*
 * Make one under this name, in the place of the one that is there if `over`.  *ours is false if
 * another process was faster.
 */
int claim_make(struct claim *c, const char *path, const struct claim_owner *self, bool over, bool *ours);

/* Does the name still lead to this claim? */
bool claim_holds(const struct claim *c, const char *path);

/*
 * It was taken over: nobody owns what was begun of the shard.  If the owner was only
 * asleep, on another machine, it finds that its file is gone, and leaves the shard to us.
 */
void claim_remove_begun(const struct claim_view *v, const char *out_dir, uint64_t shard_idx);

/* Says that the owner lives.  If this fails, at worst another process takes over. */
void claim_beat(struct claim *c);

/* Give it back; or leave it there, to say that the shard cannot be built. */
void claim_release(struct claim *c, const char *path, bool failed);

/*
 * ---- claims.c ----
 *
 * Each shard is claimed by a file in .shardpack: claim.c.  A worker begins at its own place, goes
 * around once, and claims what is missing and not claimed.  When it has come around it waits for
 * the others, and takes over what they leave.
 */

struct claims;

/*
 * Look at what is there and start to renew claims.  job->worker says where to begin.  Close it all
 * the same if this fails.  Returns the exit code, and so do the next two.
 */
int claims_open(struct claims **out, const struct job *job);

/* The next shard to build, claimed; *got is false if none can be claimed at the moment. */
int claims_next(struct claims *c, uint64_t *shard_idx, bool *got);

/*
 * All that was handed out has ended.  Wait until a shard can be claimed; *more is false if none
 * ever will be, or, with job->no_wait, if none can be now.
 */
int claims_wait(struct claims *c, bool *more);

/* The digits for the temporary file of a shard that was handed out; others remove it by them. */
const char *claims_temp_id(const struct claims *c, uint64_t shard_idx);

/*
 * A shard that was handed out was published, or its temporary file is gone; or it cannot be built
 * from these inputs.  claims_ended() is false if nobody published it, and its claim is still ours.
 */
bool claims_ended(struct claims *c, uint64_t shard_idx, bool published);
void claims_failed(struct claims *c, uint64_t shard_idx);

/* The shards that are missing, and of these the ones that are in nobody's claim, for estimates. */
bool claims_is_missing(const struct claims *c, uint64_t shard_idx);
int claims_mark_open(struct claims *c, bool *todo);

/* The end: say what was built, and what is missing. */
int claims_tell(struct claims *c, bool *is_complete);

/* Give back all that is held.  NULL is nothing. */
void claims_close(struct claims *c);

/*
 * ---- receipt.c ----
 *
 *   receipt 5
 *   shard 5 bytes 8200192 time 1764000000123456789 records 54 misses 1 read-back yes
 *     root 3d1c... sha256 9a41...              on the same line
 *   fit 54 2 0 120 3 1                         the numbers of struct fit_count; of images alone
 *   dropped 2 301 0 0 1 317 0 0 0 0            likewise; of each a count and the first ordinal
 *   field 0 54 2 17 1 6                        those of a field, by its number in the recipe
 *   not-finite 2:5:0 3:0:1                     field, values that are NaN, and that are infinite
 *   miss 301 5 1 the%20file%20ends%20early     ordinal, reason, how, message
 *   accepted 317 4 pixels%20are%20made%20up    ordinal, reason, message; a record all the same
 *   first 318 2 GIF%20has%202%20frames:...     likewise; the rest of the file is not packed
 *   end 6b0f...                                SHA-256 of all before
 *
 * read-back says whether the shard was read from the disk and verified: before it got its name, or
 * later.
 *
 * A receipt saves reading the shard while that has the same size, modification time and footer.  A
 * lost or damaged one is made again from the shard.  A sound one of other bytes says that the shard
 * was built twice, of sources that were not the same.
 */

struct receipt {
	uint64_t file_bytes, mtime_ns, record_count, miss_count;
	uint8_t root[16], sha256[32];
	bool read_back;
	struct fit_count fit;	      /* a receipt that was made again from its shard does not know it */
	struct not_finite not_finite; /* likewise */
	struct text lines;	      /* of misses, and of what was told of records */
};

/* Add a line for a problem that is not a failure. */
void receipt_add(struct text *lines, const struct problem *p);

/* The first input that vanished after it was planned, and not for `other`; false if none did. */
bool receipt_vanished(const struct receipt *r, const struct receipt *other, uint64_t *ordinal);

/*
 * Do both say the same of every input that vanished for neither of them: that it is a record, which
 * damage of it was accepted, or for which reason it was left out?
 */
bool receipt_agrees(const struct receipt *a, const struct receipt *b);

/* Its text, and a receipt from that; false if it is damaged, or of another shard or version. */
void receipt_write(const struct receipt *r, uint64_t shard_idx, struct text *out);
bool receipt_parse(struct receipt *r, uint64_t shard_idx, struct text *text);

/*
 * When the published shard was last written, in nanoseconds since 1970.  Returns false, with errno
 * set, on failure.
 */
bool receipt_shard_time(const char *out_dir, uint64_t shard_idx, uint64_t *mtime_ns);

/* Is it of the same shard: the same bytes, whenever they were written? */
bool receipt_is_same(const struct receipt *a, const struct receipt *b);

/* Are they equal in every word? */
bool receipt_is_equal(const struct receipt *a, const struct receipt *b);

/* Say that it is of another shard, and return the exit code.  `remedy` is that of a job. */
int receipt_refuse(const char *out_dir, uint64_t shard_idx, const char *remedy);

/* The shard is published: count its inputs. */
void receipt_count(const struct receipt *r, struct account *a);

/* The same, and enter the problems that it lists. */
int receipt_account(const struct receipt *r, const struct plan *plan, struct account *a);

void receipt_free(struct receipt *r);

/*
 *   OUT/.shardpack/receipts-00000      of the process that came first
 *   OUT/.shardpack/receipts-00001      of the next one that built a shard
 *
 * No two processes add to one file, because on some network file systems they overwrite each other.
 * What is torn by a kill is not sound, and what follows it is.
 */

/* All receipts of a dataset, as they were at one moment. */
struct receipt_texts {
	struct text all;
	struct receipt_place {
		uint64_t shard_idx;
		size_t at; /* of its line "shard" */
	} * place;	   /* by shard, and those of a shard as they were read */
	uint64_t count, room;
	uint64_t file_count;
};

/* No folder is fine. */
int receipt_texts_read(struct receipt_texts *t, const char *state_dir);
void receipt_texts_free(struct receipt_texts *t);

/*
 * The receipt of a shard in there; false if there is none that is sound.  Of several it is one of
 * other bytes than `is`, which must not go unnoticed, or else the one that says most.  *spoilt,
 * which may be NULL, says why one that is there does not count; it is NULL if there is none.
 */
bool receipt_find(const struct receipt_texts *t, uint64_t shard_idx, const struct receipt *is, struct receipt *r,
		  const char **spoilt);

/* The ones that a process finds, and the file to which it adds. */
struct receipt_files {
	char state_dir[FILES_PATH_BYTES];
	struct receipt_texts before; /* const between two calls of receipt_files_read() */
	pthread_mutex_t lock;
	int fd;		 /* lock: -1: none */
	uint64_t number; /* lock: in its name */
};

void receipt_files_open(struct receipt_files *f);
void receipt_files_close(struct receipt_files *f);

/* Read all that are there, into f->before, and add there from now on. */
int receipt_files_read(struct receipt_files *f, const char *state_dir);

/* Keep no file open: on NFS and sshfs a folder stays while one in it is.  More may be added. */
void receipt_files_let_go(struct receipt_files *f);

/*
 * Add the receipt of a shard, durably; any thread may.  Returns SHARD_OK or a status.  It is fine
 * if the folder is gone: then another process of the same plan has sealed the dataset.
 */
int receipt_files_add(struct receipt_files *f, uint64_t shard_idx, const struct receipt *r, struct shard_error *err);

/* ---- published_shard.c ---- */

/*
 * Look for the published shard.  *there with the receipt filled in, if it is the plan's.  One that
 * is not among `receipts`, or does not fit, is made again, which means reading all of the shard.
 * Anything else under that name is an error, and is not touched.
 */
int published_find(const struct job *job, uint64_t shard_idx, const struct receipt_texts *receipts, struct receipt *r,
		   bool *there);

/*
 * The same for a shard that is there with a receipt that fits, so that nothing has to be verified.
 * The reader, of pages only, is to be closed.  Any thread may ask.  Everything else is false without a word;
 * published_find() says what it is.
 */
bool published_peek(const struct job *job, uint64_t shard_idx, struct receipt *r, struct shard_reader **reader);

/*
 * Enter a shard of a sealed dataset into the account, from what is in it alone: which inputs are left
 * out and which damage was accepted, each with the name of its reason.
 */
int published_recount(const struct job *job, uint64_t shard_idx, struct shard_reader *reader);

/*
 * ---- finisher.c ----
 *
 * A filled shard must be made durable, read back and hashed.  Threads do that, each with one shard.
 */

#define FINISHER_SHARDS 3 /* each has a thread; one more shard is being filled */

struct finishing {
	struct shard_writer *writer; /* lock: being completed; NULL: this place is free */
	bool taken;		     /* lock: by a thread */
	uint64_t shard_idx;	     /* lock */
	struct receipt receipt;	     /* lock: its lines and counts */
	bool is_left;		     /* lock: its temporary file is gone, as `why` says */
	struct shard_error why;	     /* lock */
	bool has_result;	     /* lock: `result` waits to be entered into the account, or it is left */
	struct receipt result;	     /* lock */
};

struct finisher {
	const struct job *job;			 /* const after start; its account: the caller's thread only */
	struct shard_turns *turns;		 /* const after start */
	struct task threads;			 /* asked: a shard was handed over; told: a shard is complete */
	struct finishing place[FINISHER_SHARDS]; /* lock */
	int rc;					 /* lock: the first exit code that was not EXIT_DONE; said already */
	uint64_t other_count;			 /* lock: shards that were built again and became others */
	/*
	 * const after start: NULL, or told, in the caller's thread, of each shard that was published, or
	 * whose temporary file is gone
	 */
	struct claims *claims;
};

/* The threads take one of `turns` while they compute.  `claims` may be NULL. */
int finisher_start(struct finisher *f, const struct job *job, struct shard_turns *turns, struct claims *claims);

/*
 * Hand over a filled writer and the lines and counts for its receipt; both are then the finisher's.
 * Waits until there is a place.  Returns the exit code of what was completed so far.
 */
int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct receipt *receipt);

/*
 * Report that a shard cannot be written; any thread may call this.  A full disk stops all threads
 * at once, so only the first failure is printed.
 */
int finisher_fail(struct finisher *f, const struct shard_error *err);

/* EXIT_DONE, or the exit code of the first failure so far.  Does not wait. */
int finisher_check(struct finisher *f);

/* Wait for all and end the threads. */
int finisher_stop(struct finisher *f);

/*
 * ---- record_workers.c ----
 *
 * A ticket of workers.h is the ordinal of an image, or a block of records of fixed size, which never
 * spans two ranges.
 */

/* Neighbouring ordinals: all of a shard, or what a worker takes of them at a time. */
struct range {
	uint64_t first, count;
};

struct image_workers;
struct record_workers;

/*
 * Room for the images of these ranges, and all of `w` but its progress and the number of threads,
 * which are there.  The ranges stay as they are while it is open.
 */
int image_workers_open(struct image_workers **out, const struct job *job, const struct range *ranges,
		       uint64_t range_count, struct workers_options *w);

struct result *image_workers_result(struct image_workers *p, uint64_t slot);

/* When the workers have ended. */
void image_workers_close(struct image_workers *p);

/* The same for records of fixed size. */
int record_workers_open(struct record_workers **out, const struct job *job, const struct range *ranges,
			uint64_t range_count, struct workers_options *w);

struct fixed_block *record_workers_block(struct record_workers *p, uint64_t slot);

void record_workers_close(struct record_workers *p);

/* ---- converter.c ---- */

struct result {
	uint64_t ordinal;
	struct plan_input input;
	char path[PLAN_PATH_BYTES_MAX]; /* of the input; the record's key */
	size_t path_bytes;
	struct verdict verdict;
	struct fit_count fit;	   /* of this record */
	uint32_t undecided;	   /* of a record: 1 + a field that lies in an image that was not turned; or 0 */
	uint8_t *record;	   /* group 0: the caller's memory, of converter_record_bytes() */
	uint8_t *meta;		   /* group 1, behind it */
	struct shard_tally *tally; /* record_workers.c: of this record alone */
};

struct budget;
struct converter; /* what one thread needs */

/* All groups of a record of images. */
size_t converter_record_bytes(const struct shard_schema *s);

/*
 * The job must outlive the converter, and so must the budget, which all converters share; a converter
 * that is alone needs no budget: NULL.  Inputs that are bad are copied to the job's quarantine, if it
 * has one, and pictures are made in its sandbox, if it has one.  NULL when memory ran out.
 */
struct converter *converter_open(const struct job *job, struct budget *budget);
void converter_close(struct converter *c);

/* Make the record of the input at r->ordinal, with its fields, in r.  r->record must be set. */
void converter_run(struct converter *c, struct result *r);

/*
 * Only to learn r->undecided: whether it is.  An image that states no orientation is not decoded,
 * unless there is a sandbox.
 */
bool converter_is_undecided(struct converter *c, struct result *r);

/*
 * ---- exif_decision.c ----
 *
 * Do the numbers of boxes and masks mean the pixels as they are stored, or the picture that people see?  Annotators
 * use either, so somebody has to say it with --exif.
 */

/* Both print what has to be typed, and return EXIT_USAGE. */

/*
 * Before anything is written: is it undecided for one of 1,000 inputs from all over the plan?  Of
 * large images there are fewer, so that about 256 MiB are read.
 */
int exif_decision_look(const struct job *job, bool in_sandbox);

/* While records are made: is it undecided for this one? */
int exif_decision_check(const struct job *job, const struct result *r);

/*
 * ---- pictures.c ----
 *
 * Small images need no budget.  A large image takes its bytes from the budget before it is decoded.
 * If too few are left, it waits until others give theirs back.  An image that is larger than the
 * whole budget waits until no other image holds any of it.  So memory is at most BUDGET_SMALL_BYTES
 * for each worker, plus the budget or the largest image.
 *
 * An image takes from the budget at most once, before it holds anything that another one could wait
 * for.  So there is no deadlock.
 */

#define BUDGET_SMALL_BYTES (UINT64_C(16) << 20)	 /* up to this size an image needs no budget */
#define BUDGET_BYTES	   (UINT64_C(256) << 20) /* 58 megapixels of progressive 4:2:0, or some photos at once */

struct budget {
	pthread_mutex_t lock;
	pthread_cond_t given; /* with lock: `used` became less */
	uint64_t used;	      /* lock */
};

void budget_init(struct budget *b);
void budget_destroy(struct budget *b);

/*
 * Waits until there is enough.  This always ends: images that hold some are being decoded and give
 * it back.
 */
void budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

/*
 * One thread has these: a decoder, what turns an image upright, where its pixels go, and what it
 * has taken of the budget that all threads share.  With a sandbox, a process has these things in
 * the thread's place; this side believes no more than it has looked at.
 */

struct sandbox_worker;
struct transform;

struct pictures { /* stays where it is while it is open */
	struct decoder *decoder;
	struct turn turn;
	const struct recipe *recipe; /* const after open, and so are the next four */
	struct shard_schema schema;
	struct transform *image;		       /* of the image of a record */
	struct transform *transform[SHARD_FIELDS_MAX]; /* of further images, by their numbers in the recipe */
	struct mask *mask[SHARD_FIELDS_MAX];	       /* of masks, likewise */
	bool turning;	   /* the image at hand is held whole to be turned, beside what its decoder needs */
	bool applies_exif; /* const after open, and so are the rules */
	enum exif_rules rules;
	struct budget *budget;
	uint64_t claimed_bytes;	       /* of the budget, for the picture at hand */
	struct sandbox_worker *worker; /* or NULL: no sandbox */
	bool is_inside;		       /* this is the one in the process of a sandbox */
};

#define PICTURES_IMAGE UINT32_MAX /* stands for the number of a field: the image of the record */

/* What was made. */
struct picture {
	uint32_t width, height; /* before the resize, upright */
	uint32_t orientation;	/* of the file */
	uint32_t stated;	/* by the file, and not applied; 0 if there is nothing to apply */
};

/* The sandbox that all pictures of this recipe need.  Prints why not and returns the exit code. */
int pictures_sandbox(struct sandbox **out, const struct recipe *r);

/*
 * A thread that is alone needs no budget: NULL.  `sandbox` may be NULL.  False without memory;
 * close it all the same.
 */
bool pictures_open(struct pictures *p, const struct recipe *r, struct budget *budget, struct sandbox *sandbox);
void pictures_close(struct pictures *p);

/*
 * A file of this size is to be held.  What its pixels need cannot be told yet, so a large one
 * takes the whole budget.
 */
void pictures_claim_file(struct pictures *p, uint64_t bytes);

/* The picture at hand is done: give back what it took, for the next one to take. */
void pictures_give_back(struct pictures *p);

/*
 * The picture that belongs to `field`, from these bytes to `dst`.  The image of a record is turned
 * as the recipe says and its file states; `of` is its orientation, which others may follow.  False
 * if `v` says why not; one reason is that nothing says how a picture beside a turned image lies.
 */
bool pictures_make(struct pictures *p, uint32_t field, uint32_t of, const uint8_t *data, uint64_t bytes, uint8_t *dst,
		   struct picture *made, struct verdict *v);

/*
 * Could the file of an image state an orientation that the recipe does not apply?  In a sandbox the
 * answer is yes, since this process must not parse it.
 */
bool pictures_may_state(const struct pictures *p, const uint8_t *data, uint64_t bytes);

/*
 * How something lies that belongs to an image of orientation `of`; `turn` is an enum field_turn.  Its
 * file may state it; a mask that is drawn has none: NULL.  False, as above, if nothing says it.
 */
bool pictures_orientation_of(const struct pictures *p, uint32_t turn, uint32_t of, const uint8_t *data, uint64_t bytes,
			     uint32_t *orientation, struct verdict *v);

/*
 * ---- fixed_records.c ----
 *
 * A block of neighbouring ordinals is filled at a time: read, put in our byte order, integers
 * widened where the field is wider, ends of ragged fields zeroed and their lengths written.  A
 * label that is not a class makes its record bad, which is a verdict on its bytes.  All other
 * failures are not verdicts.
 */

struct fixed; /* what one thread needs */

#define FIXED_BLOCK_BYTES   (UINT64_C(1) << 20)
#define FIXED_BLOCK_RECORDS 4096

struct fixed_block {
	struct range place;
	uint64_t *input_idx;		  /* [place.count] */
	uint8_t *group[SHARD_GROUPS_MAX]; /* [place.count] records of the group's record_bytes */
	bool *bad;			  /* [place.count] */
	uint64_t bad_count;
	struct shard_tally *tally; /* of the good records */
	struct verdict verdict;	   /* RECORD: all were read, and are good or bad; else FAILED or STOP */
};

/* The schema is that of the plan. */
struct fixed *fixed_open(const struct plan *plan, const struct shard_schema *schema,
			 const struct source_files *source_files);
void fixed_close(struct fixed *f);

/* Records that a block should have, and memory for one. */
uint64_t fixed_block_records(const struct shard_schema *schema);
int fixed_block_open(struct fixed_block *b, const struct shard_schema *schema);
void fixed_block_close(struct fixed_block *b);

/* Fill it with the records of b->place. */
void fixed_fill(struct fixed *f, struct fixed_block *b);

/* Find the bytes of the record at place `i` of a block, for each group. */
void fixed_record(const struct fixed_block *b, const struct shard_schema *schema, uint64_t i,
		  const void *group[SHARD_GROUPS_MAX]);

/* What is wrong with the bad record at place `i` of a block. */
void fixed_explain(const struct fixed *f, const struct fixed_block *b, uint64_t i, struct verdict *out);

/*
 * Copy the fields of that record, one behind the other, to quarantine.  False if `v` says why not.
 */
bool fixed_keep(const struct fixed *f, const struct fixed_block *b, uint64_t i, const char *quarantine,
		const char *path, struct verdict *v);

/* ---- seal_dataset.c ---- */

/*
 * Compare every shard with its receipt, write the manifest and remove .shardpack.  The
 * account is made again from what is on disk and covers the whole plan: it adds up, or there
 * is no manifest.  EXIT_MISMATCH if shards are missing.
 */
int seal_run(const struct job *job);

/* The account of a dataset that is sealed already, from its shards. */
int seal_recount(const struct job *job);

#endif
