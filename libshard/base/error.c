/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - messages: written once, cut safely, fit for a terminal
 *
 * Allocates nothing and cannot fail.  A message that does not fit loses its middle, so that the
 * file at its front and the limit at its end are still there.
 */
#include "libshard/base/error.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/utf8.h"

#define CUT "..." /* ASCII: a terminal may not speak UTF-8 */

const char *shard_status_name(int status)
{
	switch (status) {
	case SHARD_OK:
		return "ok";
	case SHARD_END:
		return "end";
	case SHARD_E_ARGUMENT:
		return "bad argument";
	case SHARD_E_MEMORY:
		return "out of memory";
	case SHARD_E_IO:
		return "I/O error";
	case SHARD_E_CORRUPT:
		return "corrupt";
	case SHARD_E_UNSUPPORTED:
		return "unsupported";
	case SHARD_E_MISMATCH:
		return "not as the manifest says";
	case SHARD_E_EXISTS:
		return "exists";
	case SHARD_E_DEVICE:
		return "device error";
	case SHARD_E_CANCELLED:
		return "cancelled";
	case SHARD_E_TIMEOUT:
		return "timed out";
	default:
		return "unknown status";
	}
}

static bool within_character(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

/*
 * Copy `text` to `out`, cutting its middle, between characters, if it has `room` bytes or more; the
 * NUL counts.
 */
static void copy_cut(char *out, size_t room, const char *text, size_t bytes)
{
	if (bytes < room) {
		memmove(out, text, bytes);
		out[bytes] = 0;
		return;
	}
	size_t keep = room - sizeof(CUT), head = keep / 3, tail = keep - head;

	while (head && within_character(text[head]))
		head--;
	while (tail && within_character(text[bytes - tail]))
		tail--;
	memmove(out, text, head);
	memmove(out + head + sizeof(CUT) - 1, text + bytes - tail, tail);
	memcpy(out + head, CUT, sizeof(CUT) - 1);
	out[head + sizeof(CUT) - 1 + tail] = 0;
}

/*
 * Append characters from p[*at ..) while they fit below `room`; `*at` says how far it came.  One
 * that is not printable is \xNN for its first byte.  A backslash is doubled in a name, and stays in a
 * sentence, where names are escaped already.
 */
static size_t show_run(char *text, size_t used, size_t room, const uint8_t *p, size_t bytes, bool is_name, size_t *at)
{
	while (*at < bytes) {
		char one[5];
		uint32_t code_point;
		size_t taken = utf8_character(p + *at, bytes - *at, &code_point), n = taken;

		if (is_name && p[*at] == '\\') {
			n = (size_t)snprintf(one, sizeof(one), "\\\\");
		} else if (!taken || utf8_is_hidden(code_point)) {
			taken = 1;
			n = (size_t)snprintf(one, sizeof(one), "\\x%02x", p[*at]);
		} else {
			memcpy(one, p + *at, n);
		}
		if (used + n > room)
			break;
		memcpy(text + used, one, n);
		used += n;
		*at += taken;
	}
	text[used] = 0;
	return used;
}

const char *error_os_name(int os_code)
{
#define N(code) [code] = #code
	static const char *const names[] = {
		N(EPERM),
		N(ENOENT),
		N(ESRCH),
		N(EINTR),
		N(EIO),
		N(ENXIO),
		N(E2BIG),
		N(ENOEXEC),
		N(EBADF),
		N(ECHILD),
		N(EAGAIN),
		N(ENOMEM),
		N(EACCES),
		N(EFAULT),
		N(ENOTBLK),
		N(EBUSY),
		N(EEXIST),
		N(EXDEV),
		N(ENODEV),
		N(ENOTDIR),
		N(EISDIR),
		N(EINVAL),
		N(ENFILE),
		N(EMFILE),
		N(ENOTTY),
		N(ETXTBSY),
		N(EFBIG),
		N(ENOSPC),
		N(ESPIPE),
		N(EROFS),
		N(EMLINK),
		N(EPIPE),
		N(EDOM),
		N(ERANGE),
		N(EDEADLK),
		N(ENAMETOOLONG),
		N(ENOLCK),
		N(ENOSYS),
		N(ENOTEMPTY),
		N(ELOOP),
		N(ENOMSG),
		N(EIDRM),
		N(ECHRNG),
		N(EL2NSYNC),
		N(EL3HLT),
		N(EL3RST),
		N(ELNRNG),
		N(EUNATCH),
		N(ENOCSI),
		N(EL2HLT),
		N(EBADE),
		N(EBADR),
		N(EXFULL),
		N(ENOANO),
		N(EBADRQC),
		N(EBADSLT),
		N(EBFONT),
		N(ENOSTR),
		N(ENODATA),
		N(ETIME),
		N(ENOSR),
		N(ENONET),
		N(ENOPKG),
		N(EREMOTE),
		N(ENOLINK),
		N(EADV),
		N(ESRMNT),
		N(ECOMM),
		N(EPROTO),
		N(EMULTIHOP),
		N(EDOTDOT),
		N(EBADMSG),
		N(EOVERFLOW),
		N(ENOTUNIQ),
		N(EBADFD),
		N(EREMCHG),
		N(ELIBACC),
		N(ELIBBAD),
		N(ELIBSCN),
		N(ELIBMAX),
		N(ELIBEXEC),
		N(EILSEQ),
		N(ERESTART),
		N(ESTRPIPE),
		N(EUSERS),
		N(ENOTSOCK),
		N(EDESTADDRREQ),
		N(EMSGSIZE),
		N(EPROTOTYPE),
		N(ENOPROTOOPT),
		N(EPROTONOSUPPORT),
		N(ESOCKTNOSUPPORT),
		N(EOPNOTSUPP),
		N(EPFNOSUPPORT),
		N(EAFNOSUPPORT),
		N(EADDRINUSE),
		N(EADDRNOTAVAIL),
		N(ENETDOWN),
		N(ENETUNREACH),
		N(ENETRESET),
		N(ECONNABORTED),
		N(ECONNRESET),
		N(ENOBUFS),
		N(EISCONN),
		N(ENOTCONN),
		N(ESHUTDOWN),
		N(ETOOMANYREFS),
		N(ETIMEDOUT),
		N(ECONNREFUSED),
		N(EHOSTDOWN),
		N(EHOSTUNREACH),
		N(EALREADY),
		N(EINPROGRESS),
		N(ESTALE),
		N(EUCLEAN),
		N(ENOTNAM),
		N(ENAVAIL),
		N(EISNAM),
		N(EREMOTEIO),
		N(EDQUOT),
		N(ENOMEDIUM),
		N(EMEDIUMTYPE),
		N(ECANCELED),
		N(ENOKEY),
		N(EKEYEXPIRED),
		N(EKEYREVOKED),
		N(EKEYREJECTED),
		N(EOWNERDEAD),
		N(ENOTRECOVERABLE),
		N(ERFKILL),
		N(EHWPOISON),
	};
#undef N

	return os_code >= 0 && (size_t)os_code < sizeof(names) / sizeof(names[0]) ? names[os_code] : NULL;
}

static void set_text(struct shard_error *err, int status, int os_code, const char *fmt, va_list args)
{
	char text[2 * sizeof(err->message)], safe[sizeof(text)];
	size_t at = 0;
	int bytes = vsnprintf(text, sizeof(text), fmt, args);
	size_t used = bytes < 0 ? 0 : (size_t)bytes < sizeof(text) ? (size_t)bytes : sizeof(text) - 1;

	if (os_code && used < sizeof(text) - 1)
		used += (size_t)snprintf(text + used, sizeof(text) - used, ": %s", /* the locale "C" takes no memory */
					 strerror_l(os_code, newlocale(LC_ALL_MASK, "C", (locale_t)0)));
	if (used > sizeof(text) - 1)
		used = sizeof(text) - 1;
	err->status = status;
	err->os_code = os_code;
	used = show_run(safe, 0, sizeof(safe) - 1, (const uint8_t *)text, used, false, &at);
	copy_cut(err->message, sizeof(err->message), safe, used);
}

int error_set(struct shard_error *err, int status, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return status;
	va_start(args, fmt);
	set_text(err, status, 0, fmt, args);
	va_end(args);
	return status;
}

int error_os(struct shard_error *err, int os_code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return SHARD_E_IO;
	va_start(args, fmt);
	set_text(err, SHARD_E_IO, os_code, fmt, args);
	va_end(args);
	return SHARD_E_IO;
}

void error_prefix(struct shard_error *err, const char *name)
{
	char text[sizeof(err->message) + ERROR_NAME_BYTES + 3];
	struct shown s;
	int bytes;

	if (!err)
		return;
	bytes = snprintf(text, sizeof(text), "%s: %s", show(&s, name), err->message);
	copy_cut(err->message, sizeof(err->message), text, (size_t)bytes);
}

const char *show_bytes(struct shown *out, const void *name, size_t bytes)
{
	const uint8_t *p = name;
	const size_t room = sizeof(out->text) - 1, head = room / 3;
	size_t at = 0, used = show_run(out->text, 0, room, p, bytes, true, &at);

	if (at == bytes)
		return out->text;
	at = 0; /* too long: its beginning, the cut, and as much of its end as fits even if all of it is escaped */
	used = show_run(out->text, 0, head, p, bytes, true, &at);
	memcpy(out->text + used, CUT, sizeof(CUT) - 1);
	used += sizeof(CUT) - 1;
	at = bytes - (room - used) / 4;
	while (at < bytes && within_character((char)p[at]))
		at++;
	show_run(out->text, used, room, p, bytes, true, &at);
	return out->text;
}

const char *show(struct shown *out, const char *name)
{
	return show_bytes(out, name, strlen(name));
}
