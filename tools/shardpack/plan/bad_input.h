/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bad_input.h - an input that is known to be bad before its bytes are decoded
 *
 * A file that is missing, a sample without its label, a value that does not fit its field: the code
 * that lists the inputs finds it, and the plan says so.  Then the converter need not read the input to
 * give its verdict, and every machine gives the same.  Such a line has no tokens of columns and
 * fields.  In their place it ends with the name of an enum shard_miss_reason, and with a sentence,
 * both percent-encoded:
 *
 *   input 3 0 0 b/no1.jpg !missing table.csv,%20line%203:%20No%20such%20file%20or%20directory
 *   input 4 - 24117 a.tar/7.jpg 1 512 !incomplete ...     its class is not known
 *
 * Size, file and offset are those of bytes that quarantine keeps; 0 and no file if there are none.
 */
#ifndef SHARD_SHARDPACK_PLAN_BAD_INPUT_H
#define SHARD_SHARDPACK_PLAN_BAD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/text.h"

#define BAD_INPUT_MESSAGE_BYTES 320

struct bad_input {	 /* start it zeroed */
	uint32_t reason; /* enum shard_miss_reason; 0: nothing is wrong */
	char message[BAD_INPUT_MESSAGE_BYTES];
};

/*
 * Say what is wrong with an input.  Prints nothing and returns EXIT_BAD, for functions that return
 * the exit code.  Their callers see by bad_input_is() that this input alone is bad.
 */
int bad_input(struct bad_input *b, uint32_t reason, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool bad_input_is(const struct bad_input *b, int rc);

/* Replace what `out` has by both tokens, with a blank before each: `fields` of image_list_add(). */
void bad_input_write(const struct bad_input *b, struct text *out);

/* Do tokens of fields, or the one at `text`, begin so? */
bool bad_input_begins(const char *text);

/* Of an enum shard_miss_reason: "other" if a later release gave it. */
const char *reason_name(uint32_t reason);

/* The reason that the first token names, 0 if it names none; and the sentence of the second one. */
uint32_t bad_input_reason(const char *token, size_t bytes);
bool bad_input_message(const char *token, size_t bytes, char out[BAD_INPUT_MESSAGE_BYTES]);

#endif
