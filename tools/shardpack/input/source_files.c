/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_files.c - files that hold many inputs, read by offset
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "libshard/base/thread.h"
#include "libshard/io/io.h"
#include "tools/common/files.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/* ---- bytes copied out of a mapped file, which may become shorter meanwhile ---- */

/*
 * SIGBUS comes in the thread that reads.  Its handler jumps out of the copy, and does nothing else.
 * A signal that comes elsewhere goes to the handler that was there before, such as the library's.
 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction old_action;		  /* const after once */
static bool catches;				  /* const after once */
static _Thread_local sigjmp_buf *volatile out_of; /* the copy that this thread is in; NULL: none */

static void on_bus(int number, siginfo_t *info, void *context)
{
	const ucontext_t *there = context;

	if (out_of) { /* with the signals that were blocked there */
		pthread_sigmask(SIG_SETMASK, &there->uc_sigmask, NULL);
		siglongjmp(*out_of, 1);
	}
	if (old_action.sa_flags & SA_SIGINFO)
		old_action.sa_sigaction(number, info, context);
	else if (old_action.sa_handler != SIG_DFL && old_action.sa_handler != SIG_IGN)
		old_action.sa_handler(number);
	else
		signal(SIGBUS, SIG_DFL); /* the instruction runs again, and ends the program */
}

static void catch_bus(void)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	sigemptyset(&action.sa_mask);
	catches = sigaction(SIGBUS, &action, &old_action) == 0;
}

const uint8_t *mapped_open(int fd, uint64_t bytes)
{
	void *map;

	pthread_once(&once, catch_bus);
	if (!catches || !bytes || bytes > SIZE_MAX)
		return NULL;
	map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	madvise(map, (size_t)bytes, MADV_RANDOM); /* or the system would read what is around, too */
	return map;
}

void mapped_close(const uint8_t *map, uint64_t bytes)
{
	if (map)
		munmap((void *)(uintptr_t)map, (size_t)bytes);
}

bool mapped_copy(void *out, const uint8_t *from, size_t bytes)
{
	sigjmp_buf here;
	volatile bool whole = false;

	if (!sigsetjmp(here, 0)) {
		out_of = &here;
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(out, from, bytes);
		atomic_signal_fence(memory_order_seq_cst);
		whole = true;
	}
	out_of = NULL;
	return whole;
}

/* ---- the files of a plan ---- */

#define PREFETCH_BYTES	 512  /* of a record; the processor sees by itself how it goes on */
#define MAPPED_FILES_MAX 1024 /* a process may have some 65,000 maps, and its memory takes some of them */

/* What a file may unpack to by default: the larger one.  Data seldom shrink to a hundredth. */
#define UNPACK_DEFAULT_BYTES (UINT64_C(1) << 30)
#define UNPACK_DEFAULT_RATIO 100

struct handle {
	int fd;
	const uint8_t *map;	    /* of all of it; NULL: not mapped */
	bool made;		    /* an unnamed file of our own */
	uint64_t unpacked;	    /* what was made of it so far */
	uint64_t bytes, written_ns; /* when it was opened */
	char *path;
};

struct source_files {
	const struct source_root *root;
	char *spool_dir;
	uint64_t unpack_most; /* 0: by the size of the file */
	struct handle *file;
	uint32_t count;
	uint64_t capacity;
};

struct source_files *source_files_open(const struct source_root *root, const char *spool_dir,
				       const struct limits *limits)
{
	struct source_files *s = xcalloc(1, sizeof(*s));

	s->root = root;
	s->unpack_most = limits ? limits_most(limits, LIMIT_UNPACK) : 0;
	s->spool_dir = xstrdup(spool_dir);
	return s;
}

/* The file that was added last. */
static void drop_last(struct source_files *s)
{
	struct handle *h = &s->file[--s->count];

	mapped_close(h->map, h->bytes);
	if (h->fd >= 0)
		close(h->fd); /* nothing that anyone will read was written */
	free(h->path);
}

void source_files_close(struct source_files *s)
{
	if (!s)
		return;
	while (s->count)
		drop_last(s);
	free(s->file);
	free(s->spool_dir);
	free(s);
}

/* The next file, which is counted, and not open yet. */
static struct handle *next_handle(struct source_files *s, const char *path)
{
	struct rlimit limit;

	/* One descriptor for each file is kept, so take as many as the system gives. */
	if (!s->count && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit); /* if it is refused, opening says so when it matters */
	}
	grow(&s->file, &s->capacity, s->count + UINT64_C(1), sizeof(*s->file));
	s->file[s->count] = (struct handle){.fd = -1, .path = xstrdup(path)};
	return &s->file[s->count++];
}

static int open_file(struct source_files *s, const char *path)
{
	const char *root = s->root->name;
	struct handle *h = next_handle(s, path);
	struct stat st;

	/*
	 * Looked at before it is opened: opening a FIFO waits, and opening a device may do
	 * something.
	 */
	if (fstatat(s->root->fd, path, &st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: %s", root, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(EXIT_BAD,
			    "%s/%s: not a regular file; copy it to a regular file, which can be read at any "
			    "offset",
			    root, path);
	h->fd = openat(s->root->fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (h->fd < 0 || fstat(h->fd, &st) != 0)
		return fail(EXIT_IO, "%s/%s: %s%s", root, path, strerror(errno),
			    errno == EMFILE ? "; raise the limit with ulimit -n" : "");
	h->bytes = (uint64_t)st.st_size;
	h->written_ns = files_ns(&st.st_mtim);
	if (s->count <= MAPPED_FILES_MAX)
		h->map = mapped_open(h->fd, h->bytes);
	return EXIT_DONE;
}

/* An unnamed file in the spool folder, or the nearest one above that exists. */
static int open_unnamed(const struct source_files *s, const char *of, int *out)
{
	char *dir = xstrdup(s->spool_dir);

	if (!files_nearest(dir)) {
		free(dir);
		return fail(EXIT_IO, "%s: %s", s->spool_dir, strerror(errno));
	}
	*out = shelf_open_unnamed(dir);
	if (*out < 0)
		fail(EXIT_IO,
		     "%s: cannot create a file in %s for unpacking: %s; choose another folder with --spool "
		     "DIR",
		     of, dir, strerror(errno));
	free(dir);
	return *out < 0 ? EXIT_IO : EXIT_DONE;
}

int source_files_scratch(const struct source_files *s, const char *of, uint64_t bytes, int *fd)
{
	int rc = open_unnamed(s, of, fd), error;

	if (rc == EXIT_DONE)
		rc = free_space_check_spool(*fd, of, bytes, s->spool_dir);
	/* All of its blocks, so that none is missing when it is written to through a map. */
	error = rc == EXIT_DONE ? posix_fallocate(*fd, 0, (off_t)bytes) : 0;
	if (error)
		rc = fail(EXIT_IO, "%s: cannot keep %" PRIu64 " bytes in %s: %s", of, bytes, s->spool_dir,
			  strerror(error));
	return rc;
}

/* Only what was compressed can become much larger. */
static uint64_t unpack_most(const struct source_files *s, const char *how, uint64_t in_bytes)
{
	if (!strncmp(how, "fortran", strlen("fortran")))
		return UINT64_MAX;
	if (s->unpack_most)
		return s->unpack_most;
	if (in_bytes <= UNPACK_DEFAULT_BYTES / UNPACK_DEFAULT_RATIO)
		return UNPACK_DEFAULT_BYTES;
	return in_bytes > UINT64_MAX / UNPACK_DEFAULT_RATIO ? UINT64_MAX : in_bytes * UNPACK_DEFAULT_RATIO;
}

/*
 * What `of` unpacks to.  `bytes_known` is what it will be, 0 if that is not known; `planned` says
 * that a plan has it.
 */
static int open_unpacked(struct source_files *s, uint32_t of, const char *how, uint64_t bytes_known, bool planned)
{
	char bytes[HUMAN_CHARS], *name = source_file_name(s, of);
	struct handle *h = next_handle(s, s->file[of].path), *from = &s->file[of];
	struct stat st;
	uint64_t written = 0;
	int rc = EXIT_DONE;
	bool known = bytes_known && !(planned && !strcmp(how, "zip")); /* a plan's has holes, too */
	uint64_t says = known ? bytes_known : unpack_least_bytes(how, from->fd, from->bytes);
	uint64_t all = unpack_most(s, how, from->bytes);
	struct unpack_most most = {all - (from->unpacked < all ? from->unpacked : all), EXIT_BAD,
				   "that is its limit; if you trust it, give --limit unpack=SIZE"};

	if (planned)
		most = (struct unpack_most){bytes_known, EXIT_MISMATCH, "that is what it had when the plan was made"};
	else if (says > most.bytes)
		/* The last bytes of a gzip say its size; those of one that is cut say anything. */
		rc = fail(EXIT_BAD,
			  "%s: has %" PRIu64 " bytes and says that it unpacks to %" PRIu64
			  " (%s); the limit is %" PRIu64 "; if %syou trust it, give --limit unpack=%" PRIu64,
			  name, from->bytes, from->unpacked + says, human_bytes(bytes, from->unpacked + says), all,
			  strcmp(how, "gzip") ? "" : "it is not cut short and ", from->unpacked + says);
	if (rc == EXIT_DONE)
		rc = open_unnamed(s, name, &h->fd);
	/* One that is cut says any size: before the disk is blamed, look at all of it. */
	if (rc == EXIT_DONE && !known && !strcmp(how, "gzip") && !free_space_fits(h->fd, says))
		rc = unpack_run(how, from->fd, from->bytes, -1, name, &most, &says);
	if (rc == EXIT_DONE)
		rc = free_space_check_spool(h->fd, name, says, s->spool_dir);
	if (rc == EXIT_DONE)
		rc = unpack_run(how, from->fd, from->bytes, h->fd, name, &most, &written);
	if (rc == EXIT_DONE && fstat(h->fd, &st) != 0)
		rc = fail(EXIT_IO, "%s: %s", s->spool_dir, strerror(errno));
	if (rc == EXIT_DONE) {
		h->made = true;
		h->bytes = (uint64_t)st.st_size;
		from->unpacked += written;
		note("%s: unpacked once; uses %s on disk until this command ends", name, human_bytes(bytes, written));
	}
	free(name);
	return rc;
}

int source_files_add(struct source_files *s, struct plan *p, const char *path, uint32_t *file)
{
	uint32_t before = s->count;
	int rc = open_file(s, path);

	if (rc != EXIT_DONE && s->count > before)
		drop_last(s);
	*file = s->count - 1;
	return rc == EXIT_DONE ? plan_add_file(p, s->file[*file].bytes, path, PLAN_NO_FILE, NULL) : rc;
}

int source_files_unpack(struct source_files *s, struct plan *p, uint32_t of, const char *how, uint64_t bytes,
			uint32_t *file)
{
	uint32_t before = s->count;
	int rc = open_unpacked(s, of, how, bytes, false);

	if (rc != EXIT_DONE && s->count > before)
		drop_last(s);
	*file = s->count - 1;
	return rc == EXIT_DONE ? plan_add_file(p, s->file[*file].bytes, s->file[of].path, of, how) : rc;
}

int source_files_attach(struct source_files *s, const struct plan *p, const char *repack)
{
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < p->file_count; i++) {
		const struct plan_file *f = &p->file[i];

		rc = f->how ? open_unpacked(s, f->of, f->how, f->bytes, true) : open_file(s, f->path);
		if (rc == EXIT_DONE && s->file[i].bytes != f->bytes)
			rc = fail(EXIT_MISMATCH,
				  "%s/%s: changed since the plan was made: %" PRIu64 " bytes then, %" PRIu64
				  " now; bring back the file of then, or %s",
				  s->root->name, f->path, f->bytes, s->file[i].bytes, repack);
	}
	return rc;
}

uint64_t source_file_written_ns(const struct source_files *s, uint32_t file)
{
	return s->file[file].written_ns;
}

uint64_t source_file_bytes(const struct source_files *s, uint32_t file)
{
	return s->file[file].bytes;
}

bool source_file_read(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes,
		      char *message, size_t message_bytes)
{
	uint64_t have = files_read_at(s->file[file].fd, out, bytes, offset);

	if (have == bytes)
		return true;
	snprintf(message, message_bytes, "%s at offset %" PRIu64,
		 errno ? strerror(errno) : "became shorter: there is nothing", offset + have);
	return false;
}

bool source_file_copy(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes)
{
	const struct handle *h = &s->file[file];

	return h->map && offset <= h->bytes && bytes <= h->bytes - offset && mapped_copy(out, h->map + offset, bytes);
}

void source_file_prefetch(const struct source_files *s, uint32_t file, uint64_t offset, uint64_t bytes)
{
	const struct handle *h = &s->file[file];

	for (uint64_t i = 0; h->map && i < bytes && i < PREFETCH_BYTES && offset + i < h->bytes; i += 64)
		__builtin_prefetch(h->map + offset + i);
}

bool source_file_is_near(const struct source_files *s, uint32_t file, uint64_t offset)
{
	char byte;
	struct iovec to = {&byte, 1};

	return preadv2(s->file[file].fd, &to, 1, (off_t)offset, RWF_NOWAIT) >= 0 || errno != EAGAIN;
}

void source_file_expect(const struct source_files *s, uint32_t file, uint64_t offset, uint64_t bytes)
{
	posix_fadvise(s->file[file].fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

int source_file_get(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes)
{
	char message[160];

	if (source_file_read(s, file, offset, out, bytes, message, sizeof(message)))
		return EXIT_DONE;
	return fail(EXIT_IO, "%s/%s: %s", s->root->name, s->file[file].path, message);
}

char *source_file_name(const struct source_files *s, uint32_t file)
{
	return xasprintf("%s/%s", s->root->name, s->file[file].path);
}

int source_files_check_unchanged(const struct source_files *s, const char *repack)
{
	struct stat st;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct handle *h = &s->file[i];

		if (h->made)
			continue;
		if (fstat(h->fd, &st) != 0)
			return fail(EXIT_IO, "%s/%s: %s", s->root->name, h->path, strerror(errno));
		if ((uint64_t)st.st_size != h->bytes || files_ns(&st.st_mtim) != h->written_ns)
			return fail(EXIT_MISMATCH,
				    "%s/%s: changed while it was read; when nothing writes to it any more, %s",
				    s->root->name, h->path, repack);
	}
	return EXIT_DONE;
}

/* ---- files read ahead from front to back ---- */

#define STEP_BYTES (UINT64_C(4) << 20)

struct warm {
	const struct plan *plan;
	const struct source_files *source_files;
	uint64_t file, at; /* the thread's: what comes next */
	struct task task;
};

static bool touch_next(void *context)
{
	struct warm *w = context;

	for (; w->file < w->plan->file_count && w->at >= w->plan->file[w->file].bytes; w->at = 0)
		w->file++;
	if (w->file == w->plan->file_count)
		return false;
	task_unlock(&w->task); /* the stop that comes meanwhile is seen after the step */
	readahead(w->source_files->file[w->file].fd, (off_t)w->at, STEP_BYTES);
	task_lock(&w->task);
	w->at += STEP_BYTES;
	return true;
}

struct warm *warm_start(const struct plan *plan, const struct source_files *source_files)
{
	struct warm *w;
	uint64_t sum = 0, available = available_memory_bytes();

	for (uint64_t i = 0; i < plan->file_count; i++)
		sum += plan->file[i].bytes;
	if (plan->recipe.order != SHARD_ORDER_SHUFFLE || available == UINT64_MAX || sum > available / 2)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->plan = plan;
	w->source_files = source_files;
	if (task_start(&w->task, 1, touch_next, w))
		return w;
	task_stop(&w->task);
	free(w);
	return NULL;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	task_stop(&w->task);
	free(w);
}
