/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_folder.h - a folder of shards and claims on a simulated network file system, which many
 * machines see through caches of their own
 *
 * What one machine does is true at once on the server.  Another machine sees what it saw before
 * until its cache is SIM_CACHE_NS old: that a file was not there, which file had a name, the first
 * line of it, and the list of a folder.  This is worse than NFS, which asks the server again at each
 * open() of a file.
 *
 * There are two kinds of names, "OUT/00005.shard" and "OUT/.shardpack/claim-00005", and one set of
 * calls: those of claim.c, claims.c and output.c.  The list of .shardpack is as it is now, since
 * workers use it for estimates alone.
 */
#ifndef TESTS_PACK_SIM_FOLDER_H
#define TESTS_PACK_SIM_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard.h"
#include "tests/pack/sim_tasks.h"

#define SIM_OUT	      "out"
#define SIM_CACHE_NS  (60 * SIM_SECOND)
#define SIM_LINE      32   /* of a claim, all that ever changes in it is here */
#define SIM_FD_FIRST  1000 /* so that it is none of the system's */
#define SIM_PID_FIRST 1000000000

struct sim_file { /* a claim's; it lives as long as the folder, with or without a name */
	struct sim_file *next;
	uint64_t host;
	size_t bytes;
	char text[512];
};

struct sim_handle {
	struct sim_file *file;
	char line[SIM_LINE]; /* as this machine sees it */
	uint64_t next;	     /* of those that are closed, from 1 */
};

/* What a machine saw of a claim's name. */
struct sim_seen {
	uint64_t at_ns; /* 0: nothing */
	struct sim_file *file;
	char line[SIM_LINE];
};

struct sim_host {
	struct sim_seen *claim;	    /* [shard_count] */
	uint32_t *missing_until_ds; /* [shard_count] tenths of seconds */
	uint64_t listed_ns;
};

struct sim_calls {
	uint64_t lists, names, lstats, opens, absent, publishes, unlinks, beats;
};

static struct {
	uint64_t shard_count, host_count;
	bool is_mute; /* beats are lost */
	struct sim_host *host;
	struct sim_file **claim; /* by name: [shard_count] */
	struct sim_file *all;
	uint64_t *published_ns;	   /* [shard_count] 0: not yet */
	uint64_t *order, in_order; /* the shards, as they were published */
	uint64_t *content;	   /* [shard_count] */
	struct sim_handle *handle;
	bool lists_state;
	uint64_t handle_count, handle_room, closed, listed, list_end;
	struct sim_process **process; /* by number */
	uint64_t process_count;
	struct sim_calls calls;
} folder;

static void folder_open(uint64_t shards, uint64_t hosts)
{
	folder.shard_count = shards;
	folder.host_count = hosts;
	folder.host = calloc(hosts, sizeof(*folder.host));
	folder.claim = calloc(shards, sizeof(*folder.claim));
	folder.published_ns = calloc(shards, sizeof(*folder.published_ns));
	folder.order = calloc(shards, sizeof(*folder.order));
	folder.content = calloc(shards, sizeof(*folder.content));
	for (uint64_t h = 0; folder.host && h < hosts; h++) {
		folder.host[h].claim = calloc(shards, sizeof(struct sim_seen));
		folder.host[h].missing_until_ds = calloc(shards, sizeof(uint32_t));
		if (!folder.host[h].claim || !folder.host[h].missing_until_ds)
			abort();
	}
	if (!folder.host || !folder.claim || !folder.published_ns || !folder.order || !folder.content)
		abort();
}

static void folder_close(void)
{
	for (struct sim_file *f = folder.all, *next; f; f = next) {
		next = f->next;
		free(f);
	}
	for (uint64_t h = 0; h < folder.host_count; h++) {
		free(folder.host[h].claim);
		free(folder.host[h].missing_until_ds);
	}
	free(folder.host);
	free(folder.claim);
	free(folder.published_ns);
	free(folder.order);
	free(folder.content);
	free(folder.handle);
}

/* A call takes some time, and others come between two calls.  False, with errno, of the dead. */
static bool folder_meet(void)
{
	sim_sleep((uint64_t)(sim_lognormal(2e6, 1)));
	if (sim_is_dead())
		errno = EIO;
	return !sim_is_dead();
}

/* The shard's number in a name; false, with errno, if it is not of this kind. */
static bool folder_number(const char *path, const char *before, uint64_t *number)
{
	const char *at = strstr(path, before);

	if (at && (at += strlen(before), sscanf(at, "%" SCNu64, number) == 1) && *number < folder.shard_count)
		return true;
	errno = ENOTSUP;
	return false;
}

static struct sim_host *folder_host(void)
{
	return &folder.host[sim.task->process->host];
}

/* The machine has asked the server for this name, or changed what it leads to. */
static void folder_see(uint64_t claim)
{
	struct sim_seen *s = &folder_host()->claim[claim];

	*s = (struct sim_seen){.at_ns = sim.now_ns, .file = folder.claim[claim]};
	if (s->file)
		memcpy(s->line, s->file->text, SIM_LINE);
}

static int folder_handle(struct sim_file *file, const char *line)
{
	uint64_t i = folder.closed ? folder.closed - 1 : folder.handle_count++;

	if (folder.handle_count > folder.handle_room) {
		folder.handle_room = 2 * folder.handle_count;
		folder.handle = realloc(folder.handle, folder.handle_room * sizeof(*folder.handle));
		if (!folder.handle)
			abort();
	} else if (folder.closed) {
		folder.closed = folder.handle[i].next;
	}
	folder.handle[i].file = file;
	memcpy(folder.handle[i].line, line, SIM_LINE);
	return SIM_FD_FIRST + (int)i;
}

/* NULL if the descriptor is the system's. */
static struct sim_handle *folder_of(int fd)
{
	return sim.task && fd >= SIM_FD_FIRST && (uint64_t)fd < SIM_FD_FIRST + folder.handle_count
		       ? &folder.handle[fd - SIM_FD_FIRST]
		       : NULL;
}

/* ---- shards ---- */

/* Give a shard its name; false if it has it.  The dead do nothing. */
static bool folder_publish_shard(uint64_t idx, uint64_t content)
{
	if (!folder_meet())
		return false;
	folder_host()->missing_until_ds[idx] = 0;
	if (folder.published_ns[idx])
		return false;
	folder.published_ns[idx] = sim.now_ns;
	folder.order[folder.in_order++] = idx;
	folder.content[idx] = content;
	return true;
}

/* Machines believe what they saw last. */
WRAPPED(int, lstat64, const char *path, struct stat *st)
{
	uint64_t idx, now_ds = sim.now_ns / (SIM_SECOND / 10);
	uint32_t *missing_until_ds;

	if (!sim.task)
		return __real_lstat64(path, st);
	if (!folder_meet() || !folder_number(path, SIM_OUT "/", &idx))
		return -1;
	folder.calls.lstats++;
	missing_until_ds = &folder_host()->missing_until_ds[idx];
	if (folder.published_ns[idx] && *missing_until_ds <= now_ds)
		return 0;
	if (*missing_until_ds <= now_ds)
		*missing_until_ds = (uint32_t)(now_ds + SIM_CACHE_NS / (SIM_SECOND / 10));
	errno = ENOENT;
	return -1;
}

/* A machine asks for a list of the shards at most once in SIM_CACHE_NS. */
WRAPPED(DIR *, opendir, const char *path)
{
	struct sim_host *h;

	if (!sim.task)
		return __real_opendir(path);
	if (!folder_meet())
		return NULL;
	h = folder_host();
	folder.calls.lists++;
	folder.listed = 0;
	folder.lists_state = strstr(path, ".shardpack") != NULL;
	folder.list_end = folder.lists_state ? folder.shard_count : folder.in_order;
	if (folder.lists_state)
		return (DIR *)&folder;
	if (!h->listed_ns || sim.now_ns - h->listed_ns >= SIM_CACHE_NS)
		h->listed_ns = sim.now_ns;
	while (folder.list_end && folder.published_ns[folder.order[folder.list_end - 1]] > h->listed_ns)
		folder.list_end--;
	return (DIR *)&folder;
}

WRAPPED(struct dirent *, readdir64, DIR *dir)
{
	static struct dirent entry;

	if (!sim.task)
		return __real_readdir64(dir);
	while (folder.lists_state && folder.listed < folder.list_end && !folder.claim[folder.listed])
		folder.listed++;
	if (folder.listed == folder.list_end)
		return NULL;
	folder.calls.names++;
	if (folder.lists_state)
		snprintf(entry.d_name, sizeof(entry.d_name), "claim-%05" PRIu64, folder.listed);
	else
		snprintf(entry.d_name, sizeof(entry.d_name), "%05" PRIu64 ".shard", folder.order[folder.listed]);
	folder.listed++;
	return &entry;
}

WRAPPED(int, closedir, DIR *dir)
{
	return sim.task ? 0 : __real_closedir(dir);
}

WRAPPED(int, access, const char *path, int how)
{
	return !sim.task ? __real_access(path, how) : folder_meet() ? 0 : -1;
}

/* ---- claims ---- */

WRAPPED(int, open64, const char *path, int flags, ...)
{
	struct sim_seen *s;
	uint64_t claim;

	if (!sim.task)
		return __real_open64(path, flags, 0);
	if (!folder_meet() || !folder_number(path, "claim-", &claim))
		return -1;
	s = &folder_host()->claim[claim];
	if (!s->at_ns || sim.now_ns - s->at_ns >= SIM_CACHE_NS)
		folder_see(claim);
	if (s->file && s->file->host == sim.task->process->host)
		memcpy(s->line, s->file->text, SIM_LINE); /* its own writes are no news to a machine */
	folder.calls.opens += s->file != NULL;
	folder.calls.absent += !s->file;
	if (s->file)
		return folder_handle(s->file, s->line);
	errno = ENOENT;
	return -1;
}

WRAPPED(ssize_t, read, int fd, void *out, size_t bytes)
{
	struct sim_handle *h = folder_of(fd);

	if (!h)
		return __real_read(fd, out, bytes);
	if (bytes < h->file->bytes)
		abort();
	memcpy(out, h->file->text, h->file->bytes);
	memcpy(out, h->line, SIM_LINE);
	return (ssize_t)h->file->bytes;
}

WRAPPED(ssize_t, pwrite64, int fd, const void *data, size_t bytes, off_t at)
{
	struct sim_handle *h = folder_of(fd);
	struct sim_file *file = h ? h->file : NULL;

	if (!file)
		return __real_pwrite64(fd, data, bytes, at);
	if (!folder_meet())
		return -1;
	if ((size_t)at + bytes > SIM_LINE)
		abort();
	folder.calls.beats++;
	if (!folder.is_mute)
		memcpy(file->text + at, data, bytes);
	return (ssize_t)bytes;
}

WRAPPED(int, fsync, int fd)
{
	return folder_of(fd) ? 0 : __real_fsync(fd);
}

WRAPPED(int, close, int fd)
{
	struct sim_handle *h = folder_of(fd);

	if (!h)
		return __real_close(fd);
	h->next = folder.closed;
	folder.closed = (uint64_t)fd - SIM_FD_FIRST + 1;
	return 0;
}

WRAPPED(int, unlink, const char *path)
{
	uint64_t claim;

	if (!sim.task)
		return __real_unlink(path);
	if (!folder_meet() || !folder_number(path, "claim-", &claim))
		return -1;
	folder.calls.unlinks++;
	folder.claim[claim] = NULL;
	folder_see(claim);
	return 0;
}

WRAPPED(int, shard_publish, const char *path, const void *data, size_t bytes, int replace, struct shard_error *err)
{
	struct sim_file *f;
	uint64_t claim;

	if (!sim.task)
		return __real_shard_publish(path, data, bytes, replace, err);
	*err = (struct shard_error){.status = SHARD_E_IO, .os_code = EIO};
	if (!folder_meet() || !folder_number(path, "claim-", &claim))
		return SHARD_E_IO;
	folder.calls.publishes++;
	if (folder.claim[claim] && !replace) {
		folder_see(claim);
		return SHARD_E_EXISTS;
	}
	f = calloc(1, sizeof(*f));
	if (!f || bytes > sizeof(f->text) || bytes < SIM_LINE)
		abort();
	*f = (struct sim_file){.next = folder.all, .host = sim.task->process->host, .bytes = bytes};
	memcpy(f->text, data, bytes);
	folder.all = folder.claim[claim] = f;
	folder_see(claim);
	return SHARD_OK;
}

/* Is a process of this machine there? */
WRAPPED(int, kill, pid_t pid, int number)
{
	uint64_t idx = (uint64_t)pid - SIM_PID_FIRST;

	if (!sim.task)
		return __real_kill(pid, number);
	if (pid >= SIM_PID_FIRST && idx < folder.process_count && !folder.process[idx]->dead &&
	    !folder.process[idx]->ended)
		return 0;
	errno = ESRCH;
	return -1;
}

WRAPPED(ssize_t, getrandom, void *out, size_t bytes, unsigned flags)
{
	if (!sim.task)
		return __real_getrandom(out, bytes, flags);
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = (uint8_t)sim_random();
	return (ssize_t)bytes;
}

#endif
