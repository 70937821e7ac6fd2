/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a command on its way to a plan: what was asked, and where the answer goes
 */
#ifndef SHARD_SCAN_REQUEST_H
#define SHARD_SCAN_REQUEST_H

struct cli_args;
struct pack_options;
struct plan;
struct recipe;
struct scan;
struct source_place;
struct stored;

struct request {
	const struct pack_options *o;
	const struct cli_args *args;
	const struct source_place *place;
	struct stored *stored; /* files that hold inputs; scan() adds them to the plan */
	struct recipe *recipe;
	struct plan *plan;
	struct scan *scan;
};

#endif
