/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_recipe.h - from the options of `shardpack images` to its recipe
 */
#ifndef SHARD_SOURCES_IMAGE_RECIPE_H
#define SHARD_SOURCES_IMAGE_RECIPE_H

struct request;

/* Complete the recipe.  Says why it fails and returns the exit code. */
int image_recipe_settle(const struct request *r);

#endif
