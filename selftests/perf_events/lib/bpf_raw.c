// SPDX-License-Identifier: GPL-2.0
/* bpf(2) without libbpf: programs of a few instructions, links and maps. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf_raw.h"

int bpf_raw(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int ret = syscall(__NR_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int bpf_raw_load(union bpf_attr *attr, const struct bpf_insn *insns, __u32 cnt)
{
	attr->insns = (unsigned long)insns;
	attr->insn_cnt = cnt;
	attr->license = (unsigned long)"GPL";
	return bpf_raw(BPF_PROG_LOAD, attr);
}

int bpf_raw_load_named(enum bpf_prog_type type, const char *name,
		       const struct bpf_insn *insns, __u32 cnt)
{
	union bpf_attr attr = { .prog_type = type };

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return bpf_raw_load(&attr, insns, cnt);
}

int bpf_raw_load_return(enum bpf_prog_type type, __u32 attach, __u32 btf_id, int val)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_0, val),
		BPF_RAW_EXIT(),
	};
	union bpf_attr attr = {
		.prog_type = type,
		.expected_attach_type = attach,
		.attach_btf_id = btf_id,
	};

	return bpf_raw_load(&attr, insns, 2);
}

int bpf_raw_load_filter(const char *name)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};

	return bpf_raw_load_named(BPF_PROG_TYPE_SOCKET_FILTER, name, insns, 2);
}

int bpf_raw_link(int fd, __u32 attach)
{
	union bpf_attr attr = {
		.link_create = { .prog_fd = fd, .attach_type = attach },
	};

	return bpf_raw(BPF_LINK_CREATE, &attr);
}

int bpf_raw_test_run(int prog_fd)
{
	union bpf_attr attr = { .test = { .prog_fd = prog_fd } };

	return bpf_raw(BPF_PROG_TEST_RUN, &attr) ?: (int)attr.test.retval;
}

int bpf_raw_value_map(__u32 size)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(__u32),
		.value_size = size,
		.max_entries = 1,
	};

	return bpf_raw(BPF_MAP_CREATE, &attr);
}

int bpf_raw_map_update(int fd, const void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = fd,
		.key = (unsigned long)&key,
		.value = (unsigned long)value,
	};

	return bpf_raw(BPF_MAP_UPDATE_ELEM, &attr);
}

int bpf_raw_map_lookup(int fd, void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = fd,
		.key = (unsigned long)&key,
		.value = (unsigned long)value,
	};

	return bpf_raw(BPF_MAP_LOOKUP_ELEM, &attr);
}
