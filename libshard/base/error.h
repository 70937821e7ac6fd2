/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - a code for programs and a sentence for people
 *
 * The function that notices a failure writes the sentence.  A caller that knows the file puts its
 * name before it, with error_prefix().  Everything put into a message is made safe for a terminal
 * here.
 */
#ifndef SHARD_BASE_ERROR_H
#define SHARD_BASE_ERROR_H

#include "shard.h"

#define ERROR_NAME_BYTES 320 /* shown part of a path or key: three names fit one message with room to talk */

/* Set `err` (may be NULL) and return `status`, so that a caller can `return error_set(...)`. */
int error_set(struct shard_error *err, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As error_set(SHARD_E_IO), with the system's code; ": " and its text are added to the sentence. */
int error_os(struct shard_error *err, int os_code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* "ENOENT" and the like, or NULL if there is no such error. */
const char *error_os_name(int os_code);

/* Put `name` and ": " before the message that is there. */
void error_prefix(struct shard_error *err, const char *name);

/*
 * A path or key as it may be shown: control bytes and bad UTF-8 escaped, the middle cut out if it
 * is long.
 */
struct shown {
	char text[ERROR_NAME_BYTES];
};
const char *show_bytes(struct shown *out, const void *name, size_t bytes);
const char *show(struct shown *out, const char *name);

#endif
