// SPDX-License-Identifier: GPL-2.0
/*
 * A module with two functions of one name, and with functions that the compiler clones: see
 * CONFIG_DEBUG_INFO_BTF_FUNC. The other one of the name is in probe-sample-c-other.c.
 */
#include "probe-sample-c.h"
#include "probe-sample.h"

#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
#include <linux/fpu.h>

static void sample_floats(void)
{
	kernel_fpu_begin();
	sample_float_other();
	kernel_fpu_end();
}
#else
static void sample_floats(void)
{
}
#endif

static noinline __noipa int sample_twice(int first, const char *second)
{
	return first + second[0];
}

/*
 * What compilers usually make of these, as they are called here only:
 *
 *   sample_cloned.constprop.0(count, flags)	@scale always has the same value
 *   sample_pieces.isra.0(point->y, flags)	@point is passed as what is read of it
 */
static noinline long sample_cloned(long count, int scale, u8 flags)
{
	barrier_data(&count);
	return count * scale + flags;
}

static noinline long sample_pieces(const struct sample_point *point, u8 flags)
{
	int y = point->y;

	barrier_data(&y);
	return y + flags;
}

static void sample_run(void)
{
	struct sample_point point = { .x = 3, .y = 4 };
	long sum;

	barrier_data(&point);
	sample_twice(-7, "second");
	sample_twice_other();
	sample_floats();
	sum = sample_cloned(1000, 7, 200) + sample_cloned(-2, 7, 201);
	sum += sample_pieces(&point, 250) + sample_pieces(&point, 251);
	barrier_data(&sum);
}

MODULE_DESCRIPTION("Sample of functions for probe events, with equal names and clones");
