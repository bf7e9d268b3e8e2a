// SPDX-License-Identifier: GPL-2.0
/* The second of two modules with functions for probe events; see probe-sample-a.c. */
#include "probe-sample.h"

struct sample_point {
	long z;
	int y;
	int x;
};

static noinline __noipa long sample_shared(struct sample_point *point, u8 flags, s64 weight)
{
	return point->z + flags + weight;
}

static noinline __noipa int sample_same(unsigned int value, struct sample_point *point)
{
	return value + point->y;
}

/* An event on this name is on the one of probe-sample-a only. */
static noinline __noipa notrace int sample_traced(struct sample_point *point)
{
	return point->x;
}

/* probe-sample-c has two more of this name. */
static noinline __noipa long sample_twice(long only)
{
	return only;
}

/* As in the core kernel by its name only; see probe-sample-a.c */
static noinline __noipa long proc_self_get_link(struct sample_point *point, u8 flags)
{
	return point->x + flags;
}

static void sample_run(void)
{
	struct sample_point point = { .x = 3, .y = 4, .z = 5 };

	sample_shared(&point, 250, -7);
	sample_same(102, &point);
	sample_traced(&point);
	sample_twice(31);
	proc_self_get_link(&point, 32);
}

MODULE_DESCRIPTION("Sample of functions for probe events, second of two");
