/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_why.c - what is wrong with JSON, in words that are not those of a library
 */
#include "tools/shardpack/parse/json_why.h"

const char *json_why(const json_error_t *error)
{
	return json_error_code(error) == json_error_null_character
		       ? "a text has a NUL character (\\u0000); texts and names must have none"
		       : error->text;
}
