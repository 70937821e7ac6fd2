/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wild.c - a decoder of JPEGs that was taken over; preloaded by sandbox.sh
 *
 * The width of an image says what jpeg_read_scanlines() does in place of its work: row w of `deeds`
 * is for images that are 101 + w pixels wide.  The environment variable WILD names what else is
 * different, several at once if need be:
 *
 *   fast    the CPU time of other processes is 400 times what it is, and poll() does not wait as
 *           long, so that a hang is seen within seconds
 *   refuse  the system knows no filter of calls
 *   open    it takes a filter, and lets everything through
 *   fool    forbidden calls of the tool's own proof raise SIGSYS all the same
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

#include "tools/shardpack/sandbox/sandbox.h"

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int socket_fd = -1; /* the only descriptor that a locked-up process has, beside 0 to 2 */

static bool wants(const char *what)
{
	const char *wild = getenv("WILD");

	return wild && strstr(wild, what);
}

/* ---- what a wild decoder does ---- */

static void segfault(void)
{
	*(volatile int *)8 = 1;
}

static void corrupt(void)
{
	char *volatile a = malloc(100);

	free(a);
	free(a); /* the C library sees it, says so and aborts */
}

static void spin(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

static void block(void)
{
	char c[64];

	while (read(socket_fd, c, sizeof(c)) >= 0)
		;
	abort();
}

static void open_file(void)
{
	int fd = open("escaped", O_CREAT | O_WRONLY, 0600);

	close(fd);
}

static void connect_socket(void)
{
	struct sockaddr_un to = {AF_UNIX, "escaped.socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static void write_elsewhere(void)
{
	if (write(STDOUT_FILENO, "escaped\n", 8) < 0)
		abort();
}

static void forge(void)
{
	if (write(socket_fd, "0123456789abcdef", 16) < 0)
		abort();
	pause();
}

/* Asks for memory, and never reads that it is there. */
static void ask(void)
{
	uint64_t note[2] = {NOTE_ASK, (uint64_t)1 << 40};

	while (write(socket_fd, note, sizeof(note)) == sizeof(note))
		;
	abort();
}

static void whisper(void)
{
	if (write(socket_fd, "x", 1) < 0)
		abort();
	spin();
}

static void leave(void)
{
	exit(3);
}

static void grow(void)
{
	for (size_t i = 0; i < 64; i++) {
		char *a = malloc((size_t)1 << 30);

		if (!a)
			abort();
		for (size_t k = 0; k < (size_t)1 << 30; k += 1 << 24)
			a[k] = 1;
	}
}

/* Signal 0 does no harm where nothing forbids it. */
static void send_signal(void)
{
	kill(getpid(), 0);
}

static void make_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_process(void)
{
	if (fork() == 0)
		pause();
}

static void run_program(void)
{
	execl("/bin/touch", "touch", "escaped", (char *)NULL);
}

static void wait_for_nothing(void)
{
	sleep(1000);
}

static void overflow(void)
{
	static volatile bool ends;
	volatile char a[1 << 20];

	a[0] = 1;
	if (!ends)
		overflow();
	a[1] = a[0];
}

static void (*const deeds[])(void) = {
	segfault, abort, corrupt, spin,	       block,	  open_file,	connect_socket, write_elsewhere,
	forge,	  leave, grow,	  send_signal, make_code, make_process, run_program,	wait_for_nothing,
	overflow, ask,	 whisper};

JDIMENSION jpeg_read_scanlines(j_decompress_ptr cinfo, JSAMPARRAY rows, JDIMENSION count)
{
	unsigned w = cinfo->image_width - 101;

	if (w < sizeof(deeds) / sizeof(deeds[0]) && cinfo->output_scanline == 0)
		deeds[w]();
	return REAL(jpeg_read_scanlines)(cinfo, rows, count);
}

/* ---- a system that is different ---- */

int prctl(int option, ...)
{
	struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog open_filter = {1, &all};
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_SECCOMP) {
		for (int fd = 3; fd < 1024 && socket_fd < 0; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				socket_fd = fd;
		if (wants("refuse")) {
			errno = EINVAL;
			return -1;
		}
		if (wants("open"))
			arg[1] = (unsigned long)&open_filter;
	}
	return REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);
}

long syscall(long number, ...)
{
	long arg[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_getppid && wants("fool"))
		return raise(SIGSYS);
	return REAL(syscall)(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = REAL(clock_gettime)(clock, t);

	if (rc == 0 && clock < 0 && wants("fast")) { /* of another process */
		unsigned long long ns = (unsigned long long)t->tv_sec * 1000000000 + (unsigned long long)t->tv_nsec;

		ns *= 400;
		t->tv_sec = (time_t)(ns / 1000000000);
		t->tv_nsec = (long)(ns % 1000000000);
	}
	return rc;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return REAL(poll)(fds, count, timeout > 1 && wants("fast") ? 1 : timeout);
}
