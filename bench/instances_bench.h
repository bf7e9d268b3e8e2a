/* SPDX-License-Identifier: GPL-2.0 */
/* What instances_guest.c and its programs agree on: points, and layouts of arguments. */

#define NR_ARGS 3
#define MAX_POINTS 1000
#define MAX_LAYOUTS 90

/*
 * Points by layout: 443,354 places where functions are inlined in a kernel have 37,061
 * layouts of their arguments (the RFC of loc.bpf.h, PR 9962 of kernel-patches/bpf).
 */
#define POINTS_PER_LAYOUT 12

enum arg_kind {
	ARG_CONST,
	ARG_REG,
	ARG_REG_DEREF,
};

struct arg {
	__u8 kind;
	__u16 reg_off;		/* of the register, in struct pt_regs */
	__s32 val_off;		/* of the value, from where the register points to */
};

struct layout {
	struct arg args[NR_ARGS];
};

/*
 * The first argument is in a register, the others are where registers point to. Layout 0
 * is that of the function that is called, __x64_sys_getppid(regs): %di, +104(%di) and
 * +112(%di), which are the caller's %si and %di. The others differ in registers and
 * offsets; they are loaded, and attached at functions that nobody calls meanwhile.
 */
#define RDI_OFF 112
#define reg_off_of(layout, arg) (RDI_OFF - 8 * ((layout) % (4 + (arg))))
#define val_off_of(layout, arg) (96 + 8 * ((arg) + (layout)))
