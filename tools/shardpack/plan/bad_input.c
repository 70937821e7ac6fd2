/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bad_input.c - an input that is known to be bad before its bytes are decoded
 */
#include "tools/shardpack/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/message.h"

int bad_input(struct bad_input *b, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(b->message, sizeof(b->message), fmt, ap);
	va_end(ap);
	b->reason = reason;
	return EXIT_BAD;
}

bool bad_input_is(const struct bad_input *b, int rc)
{
	return rc == EXIT_BAD && b->reason;
}

const char *reason_name(uint32_t reason)
{
	const char *name = shard_name(SHARD_NAME_MISS_REASON, reason);

	return name ? name : "other";
}

void bad_input_write(const struct bad_input *b, struct text *out)
{
	const char *name = reason_name(b->reason);

	out->bytes = 0;
	text_add(out, " !", 2);
	text_encode(out, name, strlen(name), true);
	text_add(out, " ", 1);
	text_encode(out, b->message, strlen(b->message), true);
}

bool bad_input_begins(const char *text)
{
	return text[text[0] == ' '] == '!';
}

uint32_t bad_input_reason(const char *token, size_t bytes)
{
	char name[64];

	if (bytes < 2 || bytes >= sizeof(name) || token[0] != '!' || text_decode(token + 1, bytes - 1, true, name) < 0)
		return 0;
	for (uint32_t reason = SHARD_MISS_EMPTY; reason < SHARD_MISS_VANISHED; reason++)
		if (!strcmp(name, reason_name(reason)))
			return reason;
	return 0;
}

bool bad_input_message(const char *token, size_t bytes, char out[BAD_INPUT_MESSAGE_BYTES])
{
	char text[3 * BAD_INPUT_MESSAGE_BYTES];
	long length = bytes < sizeof(text) ? text_decode(token, bytes, true, text) : -1;

	if (length < 0 || length >= BAD_INPUT_MESSAGE_BYTES)
		return false;
	memcpy(out, text, (size_t)length + 1);
	return true;
}
