/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two modules share: functions that are called when "run" is written to
 * the module's parameter of that name, and keep their arguments where the ABI has
 * them:
 *
 *   # echo 'f:shared probe_sample_a:sample_shared $arg*' > dynamic_events
 *   # echo 1 > events/fprobes/shared/enable
 *   # echo run > /sys/module/probe_sample_a/parameters/run
 *
 * They are __noipa, so that a compiler that knows it does not change what is passed.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

static void sample_run(void);

static int sample_set_run(const char *val, const struct kernel_param *kp)
{
	sample_run();
	return 0;
}

static const struct kernel_param_ops sample_run_ops = {
	.set = sample_set_run,
};

module_param_cb(run, &sample_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write anything to call the functions once");

MODULE_LICENSE("GPL");
