/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_wrapped.h - the functions that stand in for the C library's, each going as the plan of
 * calls.h says
 *
 * They are what the linker's --wrap asks for, so they are not static; a program includes this once.
 */
#ifndef TESTS_FAULT_CALLS_WRAPPED_H
#define TESTS_FAULT_CALLS_WRAPPED_H

#include "tests/fault/calls.h"

WRAPPED(int, open64, const char *path, int flags, ...)
{
	enum how how = calls_meet(CALL_OPEN);
	bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (makes)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	if ((flags & O_TMPFILE) == O_TMPFILE && calls_lacks(NO_TMPFILE))
		return calls_end(how, calls_fail(EOPNOTSUPP));
	if ((flags & O_DIRECT) && calls_lacks(NO_DIRECT))
		return calls_end(how, calls_fail(EINVAL));
	fd = __real_open64(path, flags, mode);
	return calls_end(how, makes ? calls_created(fd) : fd);
}

WRAPPED(int, openat64, int dir, const char *path, int flags, ...)
{
	enum how how = calls_meet(CALL_OPENAT);
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	fd = __real_openat64(dir, path, flags, mode);
	return calls_end(how, flags & O_CREAT ? calls_created(fd) : fd);
}

/* Even a close that fails lets the file go, on Linux. */
WRAPPED(int, close, int fd)
{
	enum how how = calls_meet(CALL_CLOSE);
	int rc = __real_close(fd);

	return how == HOW_FAIL ? calls_fail(plan.code) : calls_end(how, rc);
}

WRAPPED(int, dup, int fd)
{
	enum how how = calls_meet(CALL_DUP);

	return how == HOW_FAIL ? calls_fail(plan.code) : calls_end(how, __real_dup(fd));
}

/* The library asks for the flags of a file, and sets them. */
WRAPPED(int, fcntl64, int fd, int command, ...)
{
	enum how how = calls_meet(CALL_FCNTL);
	va_list ap;
	int flags;

	va_start(ap, command);
	flags = command == F_SETFL ? va_arg(ap, int) : 0;
	va_end(ap);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	if (command == F_SETFL && (flags & O_DIRECT) && calls_lacks(NO_DIRECT))
		return calls_end(how, calls_fail(EINVAL));
	return how == HOW_FAKE ? 0 : calls_end(how, __real_fcntl64(fd, command, flags));
}

/* How many of `bytes` bytes a disturbed read or write gets to see; -1 for an error. */
static ssize_t calls_part(enum how how, size_t bytes)
{
	switch (how) {
	case HOW_FAIL:
		return calls_fail(plan.code);
	case HOW_ZERO:
		return 0;
	case HOW_BYTE:
		return bytes ? 1 : 0;
	case HOW_HALF:
	case HOW_DIE_HALF:
		return (ssize_t)(bytes + 1) / 2;
	default:
		return (ssize_t)bytes;
	}
}

WRAPPED(ssize_t, pread64, int fd, void *out, size_t bytes, off_t offset)
{
	enum how how = calls_meet(CALL_PREAD);
	ssize_t n = calls_part(how, bytes);

	if (n <= 0 || how == HOW_FAKE)
		return n;
	n = __real_pread64(fd, out, (size_t)n, offset);
	calls_end(how, 0);
	return n;
}

WRAPPED(ssize_t, pwrite64, int fd, const void *data, size_t bytes, off_t offset)
{
	enum how how = calls_meet(CALL_PWRITE);
	ssize_t n = calls_part(how, bytes);

	calls_wrote(fd);
	if (n <= 0 || how == HOW_FAKE)
		return n;
	if (calls_lacks(ODD_DIRECT) && (__real_fcntl64(fd, F_GETFL) & O_DIRECT))
		return calls_end(how, calls_fail(EINVAL));
	n = __real_pwrite64(fd, data, (size_t)n, offset);
	if (how == HOW_DIE_HALF)
		raise(SIGKILL);
	calls_end(how, 0);
	return n;
}

/* The library asks for shared blocks only: FICLONE. */
WRAPPED(int, ioctl, int fd, unsigned long request, ...)
{
	enum how how = calls_meet(CALL_IOCTL);
	uint8_t buffer[4096];
	off_t at = 0;
	ssize_t n;
	va_list ap;
	int from;

	va_start(ap, request);
	from = va_arg(ap, int);
	va_end(ap);
	if (how == HOW_FAIL || !calls_lacks(HAS_CLONE))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : EOPNOTSUPP));
	calls_wrote(fd);
	for (; how != HOW_FAKE && (n = __real_pread64(from, buffer, sizeof(buffer), at)) > 0; at += n)
		if (__real_pwrite64(fd, buffer, (size_t)n, at) != n)
			abort();
	return calls_end(how, 0);
}

WRAPPED(ssize_t, preadv64v2, int fd, const struct iovec *v, int count, off_t offset, int flags)
{
	enum how how = calls_meet(CALL_PREADV2);

	if (how == HOW_FAIL || calls_lacks(NO_NOWAIT | NOT_CACHED))
		return calls_end(how, calls_fail(how == HOW_FAIL	  ? plan.code
						 : calls_lacks(NO_NOWAIT) ? EOPNOTSUPP
									  : EAGAIN));
	if (how == HOW_ZERO)
		return 0;
	calls_end(how, 0);
	return __real_preadv64v2(fd, v, count, offset, flags);
}

WRAPPED(int, fsync, int fd)
{
	enum how how = calls_meet(CALL_FSYNC);

	calls_synced(fd, how != HOW_FAIL);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	return calls_armed ? calls_end(how, 0) : __real_fsync(fd);
}

WRAPPED(int, ftruncate64, int fd, off_t bytes)
{
	calls_wrote(fd);
	PLAIN(CALL_FTRUNCATE, __real_ftruncate64(fd, bytes));
}

WRAPPED(int, fallocate64, int fd, int mode, off_t offset, off_t bytes)
{
	if (calls_lacks(NO_FALLOCATE))
		return calls_fail(EOPNOTSUPP);
	PLAIN(CALL_FALLOCATE, __real_fallocate64(fd, mode, offset, bytes));
}

WRAPPED(int, renameat, int old_dir, const char *old, int new_dir, const char *new)
{
	enum how how = calls_meet(CALL_RENAMEAT);

	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old, new);
	return calls_end(how, __real_renameat(old_dir, old, new_dir, new));
}

WRAPPED(int, renameat2, int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
	enum how how = calls_meet(CALL_RENAMEAT2);

	if (how == HOW_FAIL || calls_lacks(NO_NOREPLACE))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : EINVAL));
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old, new);
	return calls_end(how, __real_renameat2(old_dir, old, new_dir, new, calls_replace ? 0 : flags));
}

WRAPPED(int, linkat, int old_dir, const char *old, int new_dir, const char *new, int flags)
{
	enum how how = calls_meet(CALL_LINKAT);

	if (how == HOW_FAIL || calls_lacks(NO_LINK))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : EPERM));
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old, new);
	return calls_end(how, __real_linkat(old_dir, old, new_dir, new, flags));
}

WRAPPED(int, unlinkat, int dir, const char *name, int flags)
{
	PLAIN(CALL_UNLINKAT, __real_unlinkat(dir, name, flags));
}

WRAPPED(int, flock, int fd, int what)
{
	if (calls_lacks(NO_FLOCK))
		return calls_fail(ENOLCK);
	PLAIN(CALL_FLOCK, __real_flock(fd, what));
}

WRAPPED(void *, mmap64, void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	enum how how = calls_meet(CALL_MMAP);
	void *map;

	if (how == HOW_FAIL) {
		errno = plan.code;
		return MAP_FAILED;
	}
	map = __real_mmap64(at, bytes, protection, flags, fd, offset);
	calls_end(how, 0);
	return map;
}

WRAPPED(int, munmap, void *at, size_t bytes)
{
	enum how how = calls_meet(CALL_MUNMAP);

	return calls_end(how == HOW_FAIL ? HOW_WELL : how, __real_munmap(at, bytes));
}

WRAPPED(ssize_t, getrandom, void *out, size_t bytes, unsigned flags)
{
	enum how how = calls_meet(CALL_GETRANDOM);
	ssize_t n = calls_part(how, bytes);

	if (n <= 0 || how == HOW_FAKE)
		return n;
	calls_end(how, 0);
	return __real_getrandom(out, (size_t)n, flags);
}

WRAPPED(DIR *, opendir, const char *path)
{
	enum how how = calls_meet(CALL_OPENDIR);

	if (how == HOW_FAIL) {
		errno = plan.code;
		return NULL;
	}
	calls_end(how, 0);
	return __real_opendir(path);
}

WRAPPED(struct dirent *, readdir64, DIR *d)
{
	enum how how = calls_meet(CALL_READDIR);

	if (how == HOW_FAIL) {
		errno = plan.code;
		return NULL;
	}
	calls_end(how, 0);
	return __real_readdir64(d);
}

WRAPPED(int, closedir, DIR *d)
{
	enum how how = calls_meet(CALL_CLOSEDIR);

	return calls_end(how == HOW_FAIL ? HOW_WELL : how, __real_closedir(d));
}

WRAPPED(int, sync_file_range, int fd, off_t offset, off_t bytes, unsigned flags)
{
	PLAIN(CALL_SYNC_RANGE, __real_sync_file_range(fd, offset, bytes, flags));
}

/* Answers with the code itself. */
WRAPPED(int, posix_fadvise64, int fd, off_t offset, off_t bytes, int advice)
{
	enum how how = calls_meet(CALL_FADVISE);

	if (how == HOW_FAIL)
		return plan.code;
	return calls_end(how, calls_armed ? 0 : __real_posix_fadvise64(fd, offset, bytes, advice));
}

#endif
