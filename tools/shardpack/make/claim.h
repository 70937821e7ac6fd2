/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - a file that says which process builds a shard
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
#ifndef SHARD_BUILD_CLAIM_H
#define SHARD_BUILD_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#define CLAIM_NONCE_BYTES 17
#define CLAIM_WORD_BYTES  96

/* In nanoseconds. */
struct claim_times {
	uint64_t beat;	 /* how often an owner beats */
	uint64_t stale;	 /* no beat for so long; more than `hidden` */
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

/* What was seen of a claim, and since when.  Start it zeroed. */
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

/* The file for a shard, in FILES_PATH_BYTES.  Returns the exit code. */
int claim_path(char *out, const char *state_dir, uint64_t shard_idx);

/*
 * Set claimed[shard_idx] where there is a claim, by one look at the folder.  Returns the exit code.
 */
int claim_list(const char *state_dir, uint64_t shard_count, bool *claimed);

/* This process, in a job without its tasks, or "". */
void claim_self(struct claim_owner *self, const char *job);

/* Read it through a fresh open.  Returns the exit code. */
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
 * another process was faster.  Returns the exit code.
 */
int claim_make(struct claim *c, const char *path, const struct claim_owner *self, bool over, bool *ours);

/* Does the name still lead to this claim? */
bool claim_holds(const struct claim *c, const char *path);

/*
 * It was taken over: what its owner began of the shard is nobody's any more.  If the owner was only
 * asleep, on another machine, it finds that its file is gone, and leaves the shard to us.
 */
void claim_remove_begun(const struct claim_view *v, const char *out_dir, uint64_t shard_idx);

/* Says that the owner lives.  If this fails, at worst another process takes over. */
void claim_beat(struct claim *c);

/* Give it back; or leave it there, to say that the shard cannot be built. */
void claim_release(struct claim *c, const char *path, bool failed);

#endif
