/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - a file that says which process builds a range of shards
 */
#include "tools/shardpack/build/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/monotonic.h"
#include "tools/common/text.h"

const struct claim_times claim_times = {
	.beat = UINT64_C(20000000000),
	.stale = UINT64_C(180000000000),
	.look = UINT64_C(5000000000),
	.say = UINT64_C(60000000000),
};

#define FIRST	   "claim 1 beat "
#define BEAT_BYTES 10
#define WORKS	   "works"
#define FAILS	   "fails" /* as long as the other word: it is written over it */

/* ---- this process ---- */

/* When a process began, in ticks after boot: field 22, counted behind the name in brackets. */
static uint64_t start_of(uint64_t pid)
{
	char path[64], line[1024];
	const char *at;
	uint64_t start = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	at = strrchr(line, ')');
	for (unsigned field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

static void put_word(char *out, size_t room, const char *word)
{
	struct text t = {0};

	text_encode(&t, word, strlen(word), true);
	snprintf(out, room, "%s", text_failed(&t) || !t.bytes ? "-" : t.data);
	text_free(&t);
}

void claim_self(struct claim_owner *self, const char *job)
{
	char word[128] = "";
	ssize_t n;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	*self = (struct claim_owner){.pid = (uint64_t)getpid(), .start = start_of((uint64_t)getpid())};
	if (f && !fgets(word, sizeof(word), f))
		word[0] = '\0';
	if (f)
		fclose(f);
	word[strcspn(word, "\n")] = '\0';
	put_word(self->boot, sizeof(self->boot), word);
	n = readlink("/proc/self/ns/pid", word, sizeof(word) - 1);
	word[n > 0 ? n : 0] = '\0';
	put_word(self->space, sizeof(self->space), word);
	if (gethostname(word, sizeof(word)) != 0)
		word[0] = '\0';
	word[sizeof(word) - 1] = '\0';
	put_word(self->host, sizeof(self->host), word);
	put_word(self->job, sizeof(self->job), job);
}

bool claim_is_dead(const struct claim_view *v, const struct claim_owner *self)
{
	const struct claim_owner *o = &v->owner;

	if (!v->there || !o->pid || !o->start || o->pid > INT_MAX || !strcmp(self->boot, "-") ||
	    !strcmp(self->space, "-") || strcmp(o->boot, self->boot) != 0 || strcmp(o->space, self->space) != 0)
		return false;
	if (kill((pid_t)o->pid, 0) != 0 && errno == ESRCH)
		return true;
	return start_of(o->pid) && start_of(o->pid) != o->start; /* another process has its number now */
}

bool claim_is_stale(struct claim_watch *w, const struct claim_view *v)
{
	uint64_t now_ns = monotonic_ns();

	if (w->since_ns && !strcmp(w->nonce, v->nonce) && w->beat == v->beat)
		return now_ns - w->since_ns >= claim_times.stale;
	memcpy(w->nonce, v->nonce, sizeof(w->nonce));
	w->beat = v->beat;
	w->since_ns = now_ns;
	return false;
}

/* ---- the file ---- */

int claim_path(char *out, const char *state_dir, uint64_t range)
{
	return files_numbered(out, state_dir, "claim-", range, "");
}

static bool parse(const char *text, struct claim_view *v)
{
	struct claim_owner *o = &v->owner;
	char word[6];

	if (sscanf(text,
		   FIRST "%10" SCNu64 " %5s nonce %16s host %255s boot %63s space %63s pid %" SCNu64 " start %" SCNu64
			 " job %255s",
		   &v->beat, word, v->nonce, o->host, o->boot, o->space, &o->pid, &o->start, o->job) != 9)
		return false;
	v->failed = !strcmp(word, FAILS);
	return true;
}

int claim_look(const char *path, struct claim_view *v)
{
	char text[2048];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	*v = (struct claim_view){.there = fd >= 0};
	if (fd < 0)
		return errno == ENOENT || errno == ESTALE
			       ? EXIT_DONE
			       : fail(EXIT_IO, "%s: cannot open it: %s", path, strerror(errno));
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0 && errno != ESTALE)
		return fail(EXIT_IO, "%s: cannot read it: %s", path, strerror(errno));
	text[n < 0 ? 0 : n] = '\0';
	if (!parse(text, v))
		*v = (struct claim_view){.there = true};
	return EXIT_DONE;
}

bool claim_holds(const struct claim *c, const char *path)
{
	struct claim_view v;

	return claim_look(path, &v) == EXIT_DONE && v.there && !strcmp(v.nonce, c->nonce);
}

static bool draw_nonce(char out[CLAIM_NONCE_BYTES])
{
	uint8_t nonce[CLAIM_NONCE_BYTES / 2];
	ssize_t n;

	do {
		n = getrandom(nonce, sizeof(nonce), 0);
	} while (n < 0 && errno == EINTR);
	for (size_t i = 0; n == (ssize_t)sizeof(nonce) && i < sizeof(nonce); i++)
		snprintf(out + 2 * i, 3, "%02x", nonce[i]);
	return n == (ssize_t)sizeof(nonce);
}

int claim_make(struct claim *c, const char *path, const struct claim_owner *self, bool over, bool *ours)
{
	struct text text = {0};
	struct shard_error err;
	int rc, code = EXIT_DONE;

	*c = (struct claim){.fd = -1};
	*ours = false;
	if (!draw_nonce(c->nonce))
		return fail(EXIT_IO, "%s: no random number for it: %s", path, strerror(errno));
	text_format(&text,
		    FIRST "%0*u " WORKS "\nnonce %s host %s boot %s space %s pid %" PRIu64 " start %" PRIu64
			  " job %s\n",
		    BEAT_BYTES, 0, c->nonce, self->host, self->boot, self->space, self->pid, self->start, self->job);
	if (text_failed(&text))
		code = fail(EXIT_IO, "%s: out of memory", path);
	rc = code == EXIT_DONE ? shard_publish(path, text.data, text.bytes, over, &err) : SHARD_OK;
	text_free(&text);
	if (code != EXIT_DONE || rc == SHARD_E_EXISTS)
		return code;
	/* A process that cannot see our lock removed the temporary file, or the folder is gone. */
	if (rc != SHARD_OK && err.os_code == ENOENT)
		return EXIT_DONE;
	if (rc != SHARD_OK)
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
	else if (claim_holds(c, path))
		unlink(path);
	close(c->fd);
	c->fd = -1;
}
