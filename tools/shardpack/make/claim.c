/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - a file that says which process builds a shard
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "tools/common/message.h"

const struct claim_times claim_times = {
	.beat = UINT64_C(20000000000),
	.stale = UINT64_C(180000000000),
	.hidden = UINT64_C(60000000000),
	.look = UINT64_C(5000000000),
	.say = UINT64_C(60000000000),
};

#define FIRST	   "claim 1 beat "
#define BEAT_BYTES 10
#define WORKS	   "works"
#define FAILS	   "fails" /* as long as the other word: it is written over it */

/* ---- this process ---- */

/*
 * When a process began, in ticks after boot: field 22, counted behind the name in brackets.  Field
 * 3 says whether it has ended, and only its parent has not asked for the exit code yet.
 */
static uint64_t start_of(uint64_t pid, bool *ended)
{
	char path[64], line[1024];
	const char *at;
	uint64_t start = 0;
	size_t n;
	FILE *f;

	*ended = false;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	at = strrchr(line, ')');
	*ended = at && (!strncmp(at, ") Z", 3) || !strncmp(at, ") X", 3));
	for (unsigned field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

void claim_self(struct claim_owner *self, const char *job)
{
	bool ended;
	ssize_t n;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	*self = (struct claim_owner){.pid = (uint64_t)getpid()};
	self->start = start_of(self->pid, &ended);
	if (f && !fgets(self->boot, sizeof(self->boot), f))
		self->boot[0] = '\0';
	if (f)
		fclose(f);
	self->boot[strcspn(self->boot, "\n")] = '\0';
	n = readlink("/proc/self/ns/pid", self->space, sizeof(self->space) - 1);
	self->space[n > 0 ? n : 0] = '\0';
	if (gethostname(self->host, sizeof(self->host)) != 0)
		self->host[0] = '\0';
	self->host[sizeof(self->host) - 1] = '\0';
	snprintf(self->job, sizeof(self->job), "%s", job);
}

bool claim_is_dead(const struct claim_view *v, const struct claim_owner *self)
{
	const struct claim_owner *o = &v->owner;
	uint64_t start;
	bool ended;

	if (!v->there || !o->pid || !o->start || o->pid > INT_MAX || !self->boot[0] || !self->space[0] ||
	    strcmp(o->boot, self->boot) != 0 || strcmp(o->space, self->space) != 0)
		return false;
	if (kill((pid_t)o->pid, 0) != 0 && errno == ESRCH)
		return true;
	start = start_of(o->pid, &ended);
	return ended || (start && start != o->start); /* another process has its number now */
}

static bool is_as_before(const struct claim_watch *w, const struct claim_view *v)
{
	return w->since_ns && !strcmp(w->nonce, v->nonce) && w->beat == v->beat;
}

bool claim_is_silent(const struct claim_watch *w, const struct claim_view *v)
{
	return !v->there || v->failed || is_as_before(w, v);
}

bool claim_is_stale(struct claim_watch *w, const struct claim_view *v)
{
	uint64_t now_ns = clock_now_ns();

	if (is_as_before(w, v))
		return now_ns - w->since_ns >= (v->there ? claim_times.stale : claim_times.hidden);
	memcpy(w->nonce, v->nonce, sizeof(w->nonce));
	w->beat = v->beat;
	w->since_ns = now_ns;
	return false;
}

/* ---- the file ---- */

int claim_path(char *out, const char *state_dir, uint64_t shard_idx)
{
	return files_numbered(out, state_dir, "claim-", shard_idx, "");
}

struct listing {
	uint64_t shard_count;
	bool *claimed;
};

static void note_file(void *context, const char *name)
{
	struct listing *l = context;
	uint64_t shard_idx;

	if (sscanf(name, "claim-%" SCNu64, &shard_idx) == 1 && shard_idx < l->shard_count)
		l->claimed[shard_idx] = true;
}

int claim_list(const char *state_dir, uint64_t shard_count, bool *claimed)
{
	struct listing l = {.shard_count = shard_count, .claimed = claimed};
	bool sealed; /* by another process: nobody claims what is there */

	return files_list(state_dir, note_file, &l, &sealed);
}

static void put_word(struct text *out, const char *name, const char *word)
{
	text_format(out, " %s ", name);
	text_encode(out, *word ? word : "-", *word ? strlen(word) : 1, true);
}

/* "NAME WORD", where a word that is unknown is "-". */
static bool take_word(struct words *line, const char *name, char out[CLAIM_WORD_BYTES])
{
	char word[3 * CLAIM_WORD_BYTES];
	struct word encoded;
	long bytes;

	if (!words_is(line, ' ', name) || !words_take(line, ' ', &encoded) || encoded.bytes >= sizeof(word))
		return false;
	bytes = text_decode(encoded.text, encoded.bytes, true, word);
	if (bytes < 0 || bytes >= CLAIM_WORD_BYTES)
		return false;
	if (!strcmp(word, "-"))
		word[0] = '\0';
	memcpy(out, word, strlen(word) + 1);
	return true;
}

static bool parse(const char *text, size_t text_bytes, struct claim_view *v)
{
	struct words all = words_of(text, text_bytes), line;
	struct claim_owner *o = &v->owner;
	struct word beat, nonce;

	if (!words_line(&all, &line) || !words_is(&line, ' ', "claim") || !words_is(&line, ' ', "1") ||
	    !words_is(&line, ' ', "beat") || !words_take(&line, ' ', &beat) || beat.bytes != BEAT_BYTES)
		return false;
	for (size_t i = 0; i < BEAT_BYTES; i++) {
		if (beat.text[i] < '0' || beat.text[i] > '9')
			return false;
		v->beat = v->beat * 10 + (uint64_t)(beat.text[i] - '0');
	}
	v->failed = words_is(&line, ' ', FAILS);
	if ((!v->failed && !words_is(&line, ' ', WORKS)) || !words_done(&line))
		return false;
	if (!words_line(&all, &line) || !words_is(&line, ' ', "nonce") || !words_take(&line, ' ', &nonce) ||
	    nonce.bytes != CLAIM_NONCE_BYTES - 1)
		return false;
	memcpy(v->nonce, nonce.text, nonce.bytes);
	return take_word(&line, "host", o->host) && take_word(&line, "boot", o->boot) &&
	       take_word(&line, "space", o->space) && words_is(&line, ' ', "pid") &&
	       words_u64(&line, ' ', UINT64_MAX, &o->pid) && words_is(&line, ' ', "start") &&
	       words_u64(&line, ' ', UINT64_MAX, &o->start) && take_word(&line, "job", o->job) && words_done(&line);
}

int claim_look(const char *path, struct claim_view *v)
{
	char text[2048];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* no FIFO holds us up */
	ssize_t n;

	*v = (struct claim_view){.there = fd >= 0};
	if (fd < 0)
		return errno == ENOENT || errno == ESTALE
			       ? EXIT_DONE
			       : fail(EXIT_IO, "%s: cannot open it: %s", path, strerror(errno));
	n = read(fd, text, sizeof(text));
	close(fd);
	if (n < 0 && errno != ESTALE)
		return fail(EXIT_IO, "%s: cannot read it: %s", path, strerror(errno));
	if (!parse(text, n < 0 ? 0 : (size_t)n, v))
		*v = (struct claim_view){.there = true};
	return EXIT_DONE;
}

bool claim_holds(const struct claim *c, const char *path)
{
	struct claim_view v;

	return !claim_look(path, &v) && v.there && !strcmp(v.nonce, c->nonce);
}

int claim_make(struct claim *c, const char *path, const struct claim_owner *self, bool over, bool *ours)
{
	uint8_t nonce[CLAIM_NONCE_BYTES / 2];
	struct text text = {0};
	struct shard_error err;
	ssize_t n;
	int rc;

	*c = (struct claim){.fd = -1};
	*ours = false;
	do {
		n = getrandom(nonce, sizeof(nonce), 0);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(nonce))
		return fail(EXIT_IO, "%s: no random number for it: %s", path, strerror(errno));
	hex_from_bytes(c->nonce, nonce, sizeof(nonce));
	text_format(&text, FIRST "%0*u " WORKS "\nnonce %s", BEAT_BYTES, 0, c->nonce);
	put_word(&text, "host", self->host);
	put_word(&text, "boot", self->boot);
	put_word(&text, "space", self->space);
	text_format(&text, " pid %" PRIu64 " start %" PRIu64, self->pid, self->start);
	put_word(&text, "job", self->job);
	text_add(&text, "\n", 1);
	rc = shard_publish(path, text.data, text.bytes, over, &err);
	text_free(&text);
	/* The folder is gone, or another process removed the temporary file. */
	if (rc != SHARD_OK && err.os_code == ENOENT)
		return EXIT_DONE;
	if (rc != SHARD_OK && rc != SHARD_E_EXISTS) /* the one that exists may be ours: a reply may be lost */
		return fail(exit_code_of_status(rc), "%s", err.message);
	c->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	*ours = c->fd >= 0 && claim_holds(c, path); /* of two that took over, one */
	if (!*ours && c->fd >= 0)
		close(c->fd);
	if (!*ours)
		c->fd = -1;
	return EXIT_DONE;
}

static void write_first(struct claim *c, const char *word)
{
	char line[BEAT_BYTES + sizeof(" " WORKS)];

	snprintf(line, sizeof(line), "%0*" PRIu64 " %s", BEAT_BYTES, c->beat % UINT64_C(10000000000), word);
	if (pwrite(c->fd, line, strlen(line), strlen(FIRST)) < 0 || fsync(c->fd) != 0)
		detail("a claim could not be renewed: %s", strerror(errno));
}

void claim_beat(struct claim *c)
{
	c->beat++;
	write_first(c, WORKS);
}

void claim_release(struct claim *c, const char *path, bool failed)
{
	if (c->fd < 0)
		return;
	if (failed)
		write_first(c, FAILS);
	close(c->fd); /* network file systems rename a file that is open and to be removed */
	c->fd = -1;
	if (!failed && claim_holds(c, path))
		unlink(path);
}

void claim_remove_begun(const struct claim_view *v, const char *out_dir, uint64_t shard_idx)
{
	char path[FILES_PATH_BYTES], suffix[sizeof(".shard.") + CLAIM_NONCE_BYTES];
	int fd;

	if (strspn(v->nonce, "0123456789abcdef") != CLAIM_NONCE_BYTES - 1) /* it is part of a path */
		return;
	snprintf(suffix, sizeof(suffix), ".shard.%s", v->nonce);
	if (files_numbered(path, out_dir, ".tmp.", shard_idx, suffix))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	/* Not if its owner lives and we see its lock, as on a local disk: it removes the file itself. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0)
		detail("%s: removed, as its owner was replaced", path);
	else if (errno != ENOENT && errno != EWOULDBLOCK)
		detail("%s: cannot remove it: %s", path, strerror(errno));
	close(fd);
}
