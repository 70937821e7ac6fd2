/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_recipe.h - from the options of `shardpack images` to the transform of its images and the fields of its records
 */
#ifndef SHARDPACK_FIELD_SETTLE_H
#define SHARDPACK_FIELD_SETTLE_H

struct request;

/* Complete the recipe.  Says why it fails and returns the exit code. */
int field_settle(const struct request *r);

#endif /* SHARDPACK_FIELD_SETTLE_H */
