/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_filter.c - which calls of the system a locked-up process may make
 *
 * An allow-list, as a program for the kernel's BPF machine.  Numbers come from the system's
 * headers, so they are right for the processor that this is compiled for.  The program compares
 * which one that is, since the same number means another call elsewhere.
 */
#include "tools/shardpack/sandbox/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__LP64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define PROGRAM_MAX 128
#define CALLS	    (sizeof(names) / sizeof(names[0]))

struct program {
	struct sock_filter at[PROGRAM_MAX];
	unsigned short count;
};

static void put(struct program *p, unsigned code, uint32_t k, unsigned char yes, unsigned char no)
{
	p->at[p->count++] = (struct sock_filter){(unsigned short)code, yes, no, k};
}

static void give(struct program *p, uint32_t what)
{
	put(p, BPF_RET | BPF_K, what, 0, 0);
}

static void load(struct program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half of an argument, which comes first in memory on both processors. */
static size_t argument(unsigned i)
{
	return offsetof(struct seccomp_data, args) + 8 * (size_t)i;
}

/* A call, up to its end: what begin() returns is to be ended. */
static unsigned short begin(struct program *p, uint32_t call)
{
	load(p, offsetof(struct seccomp_data, nr));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 0);
	return p->count;
}

static void end(struct program *p, unsigned short begun)
{
	p->at[begun - 1].jf = (unsigned char)(p->count - begun);
}

static void must_be(struct program *p, unsigned arg, uint32_t value)
{
	load(p, argument(arg));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
	give(p, SECCOMP_RET_TRAP);
}

static void must_have(struct program *p, unsigned arg, uint32_t bits)
{
	load(p, argument(arg));
	put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
	give(p, SECCOMP_RET_TRAP);
}

static void must_lack(struct program *p, unsigned arg, uint32_t bits)
{
	load(p, argument(arg));
	put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	give(p, SECCOMP_RET_TRAP);
}

static void allow(struct program *p, uint32_t call)
{
	unsigned short at = begin(p, call);

	give(p, SECCOMP_RET_ALLOW);
	end(p, at);
}

/* The C library's last words, as abort() has, go nowhere; others must be for `fd`. */
static void allow_on(struct program *p, uint32_t call, uint32_t fd)
{
	unsigned short at = begin(p, call);

	load(p, argument(0));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, STDERR_FILENO, 0, 1);
	give(p, SECCOMP_RET_ERRNO | EBADF);
	must_be(p, 0, fd);
	give(p, SECCOMP_RET_ALLOW);
	end(p, at);
}

/* Memory that nothing can be run from. */
static void allow_memory(struct program *p)
{
	unsigned short at = begin(p, __NR_mmap);

	must_lack(p, 2, PROT_EXEC);
	must_have(p, 3, MAP_ANONYMOUS);
	give(p, SECCOMP_RET_ALLOW);
	end(p, at);
	at = begin(p, __NR_mprotect);
	must_lack(p, 2, PROT_EXEC);
	give(p, SECCOMP_RET_ALLOW);
	end(p, at);
	allow(p, __NR_brk);
	allow(p, __NR_munmap);
	allow(p, __NR_mremap);
	allow(p, __NR_madvise);
}

/* abort(), and nothing for others. */
static void allow_abort(struct program *p)
{
	unsigned short at = begin(p, __NR_tgkill);

	must_be(p, 0, (uint32_t)getpid());
	must_be(p, 2, SIGABRT);
	give(p, SECCOMP_RET_ALLOW);
	end(p, at);
	allow(p, __NR_getpid);
	allow(p, __NR_gettid);
	allow(p, __NR_rt_sigprocmask);
	allow(p, __NR_rt_sigreturn);
	allow(p, __NR_exit_group);
}

bool sandbox_filter_load(int fd)
{
	struct program p = {.count = 0};
	struct sock_fprog whole = {.filter = p.at};
	unsigned short at;

	if (!ARCH) {
		errno = ENOSYS;
		return false;
	}
	load(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	give(&p, SECCOMP_RET_KILL_PROCESS);
	allow_on(&p, __NR_read, (uint32_t)fd);
	allow_on(&p, __NR_write, (uint32_t)fd);
	allow_on(&p, __NR_writev, UINT32_MAX);
	allow_memory(&p);
	at = begin(&p, __NR_futex); /* to wake others, and there are none; a wait would never end */
	load(&p, argument(1));
	put(&p, BPF_ALU | BPF_AND | BPF_K, 0x7f, 0, 0);
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, 1 /* FUTEX_WAKE */, 1, 0);
	give(&p, SECCOMP_RET_TRAP);
	give(&p, SECCOMP_RET_ALLOW);
	end(&p, at);
	allow(&p, __NR_getrandom);
	allow(&p, __NR_clock_gettime);
	allow_abort(&p);
	give(&p, SECCOMP_RET_TRAP);
	whole.len = p.count;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

/* The calls that a message is likely to name. */
static const struct {
	unsigned number;
	const char *name;
} names[] = {
	{__NR_openat, "openat"},       {__NR_socket, "socket"},	      {__NR_connect, "connect"},
	{__NR_write, "write"},	       {__NR_writev, "writev"},	      {__NR_pwrite64, "pwrite64"},
	{__NR_sendto, "sendto"},       {__NR_sendmsg, "sendmsg"},     {__NR_read, "read"},
	{__NR_clone, "clone"},	       {__NR_execve, "execve"},	      {__NR_mmap, "mmap"},
	{__NR_mprotect, "mprotect"},   {__NR_futex, "futex"},	      {__NR_kill, "kill"},
	{__NR_tgkill, "tgkill"},       {__NR_nanosleep, "nanosleep"}, {__NR_clock_nanosleep, "clock_nanosleep"},
	{__NR_ptrace, "ptrace"},       {__NR_close, "close"},	      {__NR_unlinkat, "unlinkat"},
	{__NR_ftruncate, "ftruncate"}, {__NR_prlimit64, "prlimit64"}, {__NR_sched_getaffinity, "sched_getaffinity"},
};

const char *sandbox_filter_name(unsigned number)
{
	for (size_t i = 0; i < CALLS; i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}
