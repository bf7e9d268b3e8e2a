// SPDX-License-Identifier: GPL-2.0
/*
 * Does libbpf attach to a function of the module that is named in full, by section and
 * by bpf_program__attach_kprobe_opts(), and refuse any other name with a message that
 * has it? The programs are those of libbpf_modules.bpf.c, the module is dummy.
 *
 *	libbpf_modules FILE.bpf.o
 *
 * Exit status: 0 as it should be, 1 not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define FUNCTION	"dummy:dummy_xmit"
#define DEVICE		"dummy0"

static const char *path;
static char messages[65536];
static int failed;

static void expect(const char *name, const char *what, bool is_so)
{
	printf("%s: %s: %s\n", is_so ? "ok" : "not ok", name, what);
	failed |= !is_so;
}

static int keep_message(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t used = strlen(messages);

	if (level == LIBBPF_DEBUG)
		return 0;
	return vsnprintf(messages + used, sizeof(messages) - used, format, args);
}

static int load_dummy(void)
{
	char file[256];
	struct utsname uts;
	int fd, err;

	uname(&uts);
	snprintf(file, sizeof(file), "/lib/modules/%s/kernel/drivers/net/dummy.ko", uts.release);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	err = fd < 0 || syscall(__NR_finit_module, fd, "numdummies=1", 0) ? -errno : 0;
	if (err)
		fprintf(stderr, "libbpf_modules: cannot load %s: %s\n", file, strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

/* Have dummy_xmit() called. */
static void send_frame(void)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_LOOPBACK),
		.sll_halen = ETH_ALEN,
	};
	struct ifreq ifr = { .ifr_name = DEVICE, .ifr_flags = IFF_UP };
	struct ethhdr frame[4] = { { .h_proto = htons(ETH_P_LOOPBACK) } };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	to.sll_ifindex = if_nametoindex(DEVICE);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) ||
	    sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to)) < 0)
		expect(DEVICE, strerror(errno), false);
	if (fd >= 0)
		close(fd);
}

/* Return: an object with this program alone, loaded, or NULL */
static struct bpf_object *load_only(const char *name)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog = obj ? bpf_object__find_program_by_name(obj, name) : NULL;

	messages[0] = '\0';
	if (prog && !bpf_program__set_autoload(prog, true) && !bpf_object__load(obj))
		return obj;
	bpf_object__close(obj);
	return NULL;
}

/* Does the program of @obj run each time the function is called? */
static bool runs(struct bpf_object *obj)
{
	struct bpf_map *bss = bpf_object__find_map_by_name(obj, ".bss");
	size_t size;
	volatile __u64 *nr = bss ? bpf_map__initial_value(bss, &size) : NULL;
	__u64 before = nr ? *nr : 0;

	send_frame();
	return nr && *nr == before + 1;
}

/* @section: the name in the object, which loading does not change */
static void attach_by_section(const char *name, const char *section)
{
	const char *target = strchr(section, '/') + 1;
	struct bpf_object *obj = load_only(name);
	struct bpf_link *link = NULL;

	if (obj)
		link = bpf_program__attach(bpf_object__find_program_by_name(obj, name));
	if (!strncmp(name, "refused_", strlen("refused_"))) {
		expect(section, link ? "attached" : "refused", !link);
		expect(section, "a message with the name", strstr(messages, target));
	} else {
		expect(section, link ? "attached" : "refused", link);
		if (!strncmp(name, "runs_", strlen("runs_")))
			expect(section, "it runs", link && runs(obj));
	}
	printf("%s", messages);
	bpf_link__destroy(link);
	bpf_object__close(obj);
}

static void attach_manually(const char *mode_name, enum probe_attach_mode mode, bool retprobe)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .attach_mode = mode, .retprobe = retprobe);
	struct bpf_object *obj = load_only("manual");
	struct bpf_link *link = NULL;

	if (obj)
		link = bpf_program__attach_kprobe_opts(
				bpf_object__find_program_by_name(obj, "manual"), FUNCTION, &opts);
	expect(mode_name, retprobe ? "on return" : "on entry", link && runs(obj));
	printf("%s", messages);
	bpf_link__destroy(link);
	bpf_object__close(obj);
}

static void manual_attachments(void)
{
	static const struct {
		const char *name;
		enum probe_attach_mode mode;
	} modes[] = {
		{ "default", PROBE_ATTACH_MODE_DEFAULT },
		{ "tracefs", PROBE_ATTACH_MODE_LEGACY },
		{ "perf", PROBE_ATTACH_MODE_PERF },
		{ "link", PROBE_ATTACH_MODE_LINK },
	};
	unsigned int i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		attach_manually(modes[i].name, modes[i].mode, false);
		attach_manually(modes[i].name, modes[i].mode, true);
	}
}

int main(int argc, char **argv)
{
	struct bpf_object *obj = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *prog;

	if (!obj) {
		fprintf(stderr, "libbpf_modules: no programs: %s\n", strerror(errno));
		return 1;
	}
	path = argv[1];
	if (load_dummy())
		return 1;
	libbpf_set_print(keep_message);
	bpf_object__for_each_program(prog, obj) {
		if (strchr(bpf_program__section_name(prog), '/'))
			attach_by_section(bpf_program__name(prog),
					  bpf_program__section_name(prog));
	}
	manual_attachments();
	bpf_object__close(obj);
	if (syscall(__NR_delete_module, "dummy", O_NONBLOCK))
		expect("dummy", "cannot be unloaded", false);
	return failed;
}
