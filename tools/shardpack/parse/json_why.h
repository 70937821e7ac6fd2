/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_why.h - what is wrong with JSON, in words that are not those of a library
 */
#ifndef SHARD_SHARDPACK_PARSE_JSON_WHY_H
#define SHARD_SHARDPACK_PARSE_JSON_WHY_H

#include <jansson.h>

/* The text of an error of json_loadb(). */
const char *json_why(const json_error_t *error);

#endif
