// SPDX-License-Identifier: GPL-2.0
/*
 * Gives the next BPF program the id that is asked for, if no other one has it, for
 * reuse_id.py: ids begin anew after two thousand million programs, which is more than
 * a test can load.
 *
 * idr is the address of prog_idr, as /proc/kallsyms has it. Nobody else may load a
 * program meanwhile: that has a lock which is not to be had here.
 */
#include <linux/idr.h>
#include <linux/module.h>

static unsigned long idr;
static unsigned int id;
module_param(idr, ulong, 0);
module_param(id, uint, 0);

static int __init set_prog_id_init(void)
{
	if (!idr || !id)
		return -EINVAL;
	idr_set_cursor((struct idr *)idr, id);
	return 0;
}

static void __exit set_prog_id_exit(void)
{
}

module_init(set_prog_id_init);
module_exit(set_prog_id_exit);
MODULE_DESCRIPTION("Choose the id of the next BPF program");
MODULE_LICENSE("GPL");
