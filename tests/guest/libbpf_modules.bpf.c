// SPDX-License-Identifier: GPL-2.0
/*
 * Programs for libbpf_modules.c, which takes from the name what is expected: those
 * of dummy_xmit() run, those of vfs_read() attach, and the others are refused. What
 * is in front of the first character that a name cannot have is a function that can
 * be attached to.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define PROG(name, section)				\
	SEC("?" section) int name(void *ctx)		\
	{						\
		__sync_fetch_and_add(&runs, 1);		\
		return 0;				\
	}

__u64 runs;

PROG(runs_fentry_module, "fentry/dummy:dummy_xmit")
PROG(runs_fentry, "fentry/dummy_xmit")
PROG(attaches_fentry_vmlinux, "fentry/vmlinux:vfs_read")
PROG(refused_fentry_prefix, "fentry/dum:dummy_xmit")
PROG(refused_fentry_longer, "fentry/dummy_:dummy_xmit")
PROG(refused_fentry_letter, "fentry/v:vfs_read")
PROG(refused_fentry_empty, "fentry/:vfs_read")

PROG(runs_kprobe_module, "kprobe/dummy:dummy_xmit")
PROG(runs_kprobe_offset, "kprobe/dummy:dummy_xmit+0x0")
PROG(runs_kretprobe_module, "kretprobe/dummy:dummy_xmit")
PROG(runs_kprobe, "kprobe/dummy_xmit")
PROG(refused_kprobe_prefix, "kprobe/dum:dummy_xmit")
PROG(refused_kprobe_no_module, "kprobe/vfs_read:dummy_xmit")
PROG(refused_kprobe_dash, "kprobe/vfs_read-x")
PROG(refused_kprobe_plus, "kprobe/vfs_read+")
PROG(refused_kprobe_digits, "kprobe/vfs_read+0x0z")
PROG(refused_kretprobe_dash, "kretprobe/vfs_read-x")

PROG(attaches_multi, "kprobe.multi/vfs_rea?")
PROG(refused_multi_module, "kprobe.multi/vfs_read:dummy_xmit")
PROG(refused_multi_dash, "kprobe.multi/vfs_rea?-x")
PROG(refused_session_module, "kprobe.session/vfs_read:dummy_xmit")
PROG(refused_fentry_multi_dash, "fentry.multi/vfs_read-x")

PROG(manual, "kprobe")

char LICENSE[] SEC("license") = "GPL";
