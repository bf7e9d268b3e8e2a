// SPDX-License-Identifier: GPL-2.0
/* What many tests need in addition to libbpf. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf_load.h"

struct btf *vmlinux_btf;

/*
 * The first bpf_prog_load() of a process loads others to probe the kernel, and BTF is slow
 * to read: neither is for when a test counts programs or measures time.
 */
static __attribute__((constructor)) void prepare_libbpf(void)
{
	int prog = load_filter("probe");

	close_fd(&prog);
	vmlinux_btf = btf__load_vmlinux_btf();
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int load_return(enum bpf_prog_type type, __u32 attach, __u32 btf_id, int val)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = attach, .attach_btf_id = btf_id);
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(BPF_REG_0, val), BPF_EXIT_INSN() };

	return bpf_prog_load(type, NULL, "GPL", insns, ARRAY_SIZE(insns), &opts);
}

int load_filter(const char *name)
{
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(BPF_REG_0, 0), BPF_EXIT_INSN() };

	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, name, "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

int value_map(__u32 size)
{
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(int), size, 1, NULL);
}

int run_once(const struct bpf_insn *insns, size_t cnt, int map, void *value)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", insns, cnt, NULL);
	int err = prog;

	if (prog >= 0)
		err = bpf_prog_test_run_opts(prog, &opts) ?: (int)opts.retval;
	close_fd(&prog);
	return err ?: bpf_map_lookup_elem(map, &zero, value);
}

int run_on_packet(int prog, unsigned int repeat)
{
	static char packet[64];

	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet,
		    .data_size_in = sizeof(packet), .repeat = repeat);

	return bpf_prog_test_run_opts(prog, &opts);
}

int vmlinux_btf_id(const char *name, __u32 kind)
{
	return vmlinux_btf ? btf__find_by_name_kind(vmlinux_btf, name, kind) : -ENOENT;
}

int vmlinux_offset_of(const char *type, const char *member, int *i)
{
	int id = vmlinux_btf_id(type, BTF_KIND_STRUCT), nr;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(vmlinux_btf, id);

	for (nr = 0; t && nr < btf_vlen(t); nr++) {
		__u32 name = btf_members(t)[nr].name_off;

		if (strcmp(btf__name_by_offset(vmlinux_btf, name), member))
			continue;
		if (i)
			*i = nr;
		return btf_member_bit_offset(t, nr) / 8;
	}
	return -ENOENT;
}

struct prog_btf load_btf(const char *main, const char *sub, const char *file, const char *line)
{
	struct prog_btf b = { .fd = -ENOMEM };
	struct btf *btf = btf__new_empty();
	const void *data;
	__u32 size = 0;

	if (!btf)
		return b;
	btf__add_int(btf, "int", sizeof(int), BTF_INT_SIGNED);
	btf__add_func_proto(btf, 1);
	btf__add_func(btf, main, BTF_FUNC_GLOBAL, 2);
	btf__add_func(btf, sub, BTF_FUNC_STATIC, 2);
	b.file = btf__add_str(btf, file);
	b.line = btf__add_str(btf, line);
	data = btf__raw_data(btf, &size);
	b.fd = bpf_btf_load(data, size, NULL);
	btf__free(btf);
	return b;
}
