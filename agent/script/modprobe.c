// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_PATH, makedev() */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/applet.h"
#include "modprobe.h"
#include "module_index.h"
#include "workload.h"

#define FOLDER "/modules"
#define HELPER FOLDER "/modprobe"
#define INDEX FOLDER "/index"
#define SETTING "/proc/sys/kernel/modprobe"
#define INDEX_MAX (512 << 10)

/*
 * What systemd sets for a distribution's kernel (modprobe.d/systemd.conf): without it, loading
 * these makes a device, and `ip link add dummy0 type dummy` fails.
 */
static const struct {
	const char *module, *parameters;
} defaults[] = {
	{"bonding", "max_bonds=0"},
	{"dummy", "numdummies=0"},
	{"ifb", "numifbs=0"},
};

/*
 * The nodes that a distribution makes at the start, for modules that are loaded when a program
 * opens one (MODULE_ALIAS("devname:...") and include/linux/miscdevice.h).
 */
static const struct {
	const char *path;
	unsigned int major, minor;
} nodes[] = {
	{"/dev/autofs", 10, 235},	{"/dev/btrfs-control", 10, 234},
	{"/dev/cuse", 10, 203},		{"/dev/fuse", 10, 229},
	{"/dev/loop-control", 10, 237}, {"/dev/mapper/control", 10, 236},
	{"/dev/net/tun", 10, 200},	{"/dev/ppp", 108, 0},
	{"/dev/uhid", 10, 239},		{"/dev/uinput", 10, 223},
	{"/dev/vfio/vfio", 10, 196},	{"/dev/vhost-net", 10, 238},
	{"/dev/vhost-vsock", 10, 241},
};

/* Where a script finds programs: PATH in src/kteardown/script/host.py. */
static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"};

/* At a level that does not reach the console, which takes the time of the guest. */
static void __attribute__((format(printf, 1, 2))) log_line(const char *format, ...)
{
	char text[300];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC), len;
	va_list args;

	if (fd < 0)
		return;
	len = snprintf(text, sizeof(text), "<6>kteardown: ");
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len - 1, format, args);
	va_end(args);
	/* Nobody reads a line without its end before the next line comes (vprintk_store()). */
	strcat(text, "\n");
	/* A line that is missing only makes the lab's message less exact. */
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "modprobe: /dev/kmsg: %s\n", strerror(errno));
	close(fd);
}

/* The text of the index, which is not freed; "" without one. */
static const char *load_index(void)
{
	static char text[INDEX_MAX];

	if (read_file(INDEX, text, sizeof(text)) < 0)
		return "";
	return text;
}

static bool is_loaded(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	return !access(path, F_OK);
}

/* Notes that the script, or the kernel for it, has asked for a module. Returns whether it had. */
static bool note_asked(const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), FOLDER "/%s.asked", name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return true;
	close(fd);
	return false;
}

static bool inserted; /* whether a module was, in this process */

static int insert(const char *name, const char *parameters)
{
	char path[300], all[MODPROBE_PARAMETERS + 64] = "";
	int fd, error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!strcmp(name, defaults[i].module))
			snprintf(all, sizeof(all), "%s ", defaults[i].parameters);
	/* Of two values the kernel uses the last. */
	strncat(all, parameters, sizeof(all) - strlen(all) - 1);
	snprintf(path, sizeof(path), FOLDER "/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* ENOENT is for a module that is not there; the kernel says the same of a symbol. */
	if (syscall(SYS_finit_module, fd, all, 0) && errno != EEXIST)
		error = errno == ENOENT ? -ENOEXEC : -errno;
	close(fd);
	if (!error)
		inserted = true;
	else
		log_line("cannot load the module %.60s: %s", name, strerror(-error));
	return error;
}

/*
 * Loads one module. It may be loaded already, before the script began: to have the parameters with
 * which the script loads it, it is loaded anew. What the script itself has loaded stays as it is,
 * as with any modprobe.
 */
static int load(const char *name, const char *parameters)
{
	bool asked = note_asked(name);

	if (is_loaded(name)) {
		/* In use: a script that begins with another use of it has it as it is. */
		if (asked || !*parameters || syscall(SYS_delete_module, name, O_NONBLOCK))
			return 0;
	}
	return insert(name, parameters);
}

/* Loads what the index has for an alias. The last module is the one that was asked for. */
static int load_all(const char *modules, const char *parameters)
{
	char name[MODULE_NAME];
	int error = -ENOENT;

	while (module_index_word(&modules, name, sizeof(name)))
		error = load(name, strchr("\n", *modules) ? parameters : "");
	return error;
}

static int add(const struct modprobe *m, const char *index, const char *word)
{
	enum module_kind kind;
	const char *modules = module_index_find(index, word, &kind);
	char name[MODULE_NAME];
	int error;

	inserted = false;
	snprintf(name, sizeof(name), "%s", word);
	module_normalize(name);
	if (module_index_builtin(index, name))
		error = 0;
	else if (m->dry_run)
		error = modules || is_loaded(name) ? 0 : -ENOENT;
	else if (modules)
		error = load_all(modules, m->parameters);
	else
		error = strchr(name, '/') ? -ENOENT : load(name, m->parameters);
	/* By these lines the lab knows what the script needs (run/script_modules.py). */
	if (inserted && (!modules || kind == MODULE_OFFER))
		log_line("loaded the modules for %.60s", word);
	else if (error == -ENOENT && !modules)
		log_line("no module for %.60s", word);
	if (error == -ENOENT && !m->quiet)
		fprintf(stderr, "modprobe: FATAL: Module %s not found in directory " FOLDER "\n",
			word);
	else if (error && !m->quiet)
		fprintf(stderr, "modprobe: ERROR: could not insert '%s': %s\n", word,
			strerror(-error));
	return error;
}

static int take_out(const struct modprobe *m, const char *index, const char *word)
{
	enum module_kind kind;
	const char *what = "", *modules = module_index_find(index, word, &kind);
	char name[MODULE_NAME];

	snprintf(name, sizeof(name), "%s", word);
	/* Of an alias: the module itself, which is the last. */
	while (modules && module_index_word(&modules, name, sizeof(name)))
		;
	module_normalize(name);
	if (module_index_builtin(index, name))
		what = "builtin";
	else if (is_loaded(name) && !m->dry_run && syscall(SYS_delete_module, name, O_NONBLOCK))
		what = "in use";
	if (*what && !m->quiet)
		fprintf(stderr, "modprobe: FATAL: Module %s is %s.\n", word, what);
	return *what ? -EBUSY : 0;
}

const char *modprobe_parse(struct modprobe *m, int argc, char **argv)
{
	static const struct option options[] = {
		{"all", 0, NULL, 'a'},		 {"remove", 0, NULL, 'r'},
		{"quiet", 0, NULL, 'q'},	 {"dry-run", 0, NULL, 'n'},
		{"show", 0, NULL, 'n'},		 {"verbose", 0, NULL, 'v'},
		{"syslog", 0, NULL, 's'},	 {"force", 0, NULL, 'f'},
		{"use-blacklist", 0, NULL, 'b'}, {"ignore-install", 0, NULL, 'i'},
		{"ignore-remove", 0, NULL, 'i'}, {"first-time", 0, NULL, 'i'},
		{"dirname", 1, NULL, 'd'},	 {"set-version", 1, NULL, 'S'},
		{"config", 1, NULL, 'C'},	 {NULL, 0, NULL, 0},
	};
	bool all = false;
	int option;

	memset(m, 0, sizeof(*m));
	optind = 0; /* anew, also in a process that has read others before */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "arqnvsfbid:S:C:", options, NULL)) != -1) {
		all |= option == 'a';
		m->remove |= option == 'r';
		m->quiet |= option == 'q';
		m->dry_run |= option == 'n';
		if (option == '?')
			return "unknown option";
	}
	m->names = argv + optind;
	m->nr_names = argc - optind;
	if (!m->nr_names)
		return "missing parameters";
	if (all || m->remove)
		return NULL;
	m->nr_names = 1;
	for (int i = optind + 1; i < argc; i++) {
		size_t len = strlen(m->parameters), room = sizeof(m->parameters) - len;

		if (snprintf(m->parameters + len, room, "%s%s", len ? " " : "", argv[i]) >=
		    (int)room)
			return "too many parameters";
	}
	return NULL;
}

static int run(int argc, char **argv)
{
	const char *index = load_index(), *wrong;
	struct modprobe m;
	int failed = 0;

	wrong = modprobe_parse(&m, argc, argv);
	if (wrong) {
		fprintf(stderr, "modprobe: ERROR: %s\n", wrong);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < m.nr_names; i++)
		failed |= m.remove ? take_out(&m, index, m.names[i]) : add(&m, index, m.names[i]);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* By its name, and by the paths by which the kernel and scripts call it. */
APPLET(modprobe, run);
#define AT_PATH(id, path)                                                                          \
	static const struct applet id##_applet = {path, run};                                      \
	static const struct applet *const id##_registered                                          \
		__attribute__((used, section("applets"))) = &id##_applet
AT_PATH(helper, HELPER);
AT_PATH(in_sbin, "/sbin/modprobe");
AT_PATH(in_usr_sbin, "/usr/sbin/modprobe");

/*
 * Puts this program where a script finds modprobe. Any other could load nothing, except one of the
 * user's root that has the modules of this kernel.
 */
static int replace_modprobe(const char *self)
{
	struct utsname name;
	char path[300];

	uname(&name);
	snprintf(path, sizeof(path), "/lib/modules/%s", name.release);
	if (!access(path, F_OK))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/modprobe", folders[i]);
		unlink(path);
	}
	mkdir("/sbin", 0755);
	return symlink(self, "/sbin/modprobe") ? -errno : 0;
}

static void make_nodes(void)
{
	char above[300];

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		snprintf(above, sizeof(above), "%s", nodes[i].path);
		*strrchr(above, '/') = '\0';
		mkdir(above, 0755);
		/* One that is there belongs to a driver that is loaded. */
		mknod(nodes[i].path, S_IFCHR | 0600, makedev(nodes[i].major, nodes[i].minor));
	}
}

int modprobe_prepare(void)
{
	struct module_line line;
	const char *index;
	char self[300];
	ssize_t len;
	int error;

	if (access(SETTING, F_OK))
		return 0;
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		return -errno;
	self[len] = '\0';
	mkdir(FOLDER, 0755);
	/* A script that names it has a link to busybox there. */
	unlink(HELPER);
	if (symlink(self, HELPER))
		return -errno;
	error = replace_modprobe(self);
	/* Before the modules: one may ask for others. */
	if (!error)
		error = write_file(SETTING, "%s", HELPER);
	if (error)
		return error;
	index = load_index();
	while (module_index_line(&index, &line)) {
		char name[MODULE_NAME];

		/* What does not load may be a driver for another processor; a script sees it. */
		while (line.kind == MODULE_ALIAS &&
		       module_index_word(&line.modules, name, sizeof(name)))
			if (!is_loaded(name))
				insert(name, "");
	}
	make_nodes();
	return 0;
}
