// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "lib/applet.h"

static const char help[] =
	"kteardown-agent: runs the workloads of kteardown inside a guest.\n\nAs the guest's first "
	"process it mounts the file systems that it needs, reads /plan,\nruns the trials in it, "
	"writes one JSON record per line to the virtio-serial port\nkteardown.records, and powers "
	"the guest off. docs/formats.md describes plan and records.\n\n  --list                    "
	"list the workloads and their parameters\n  --run-on-this-host PLAN   run a plan on this "
	"system and write the records to standard\n                            output. Workloads "
	"suspend, freeze and exhaust the system:\n                            use it only on a "
	"system whose loss does not matter.\n  --help                    print this text\n";

static void load_plan(const char *path, struct plan *plan)
{
	char error[DETAIL_MAX], *text;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), status;

	if (fd < 0 || fstat(fd, &st))
		agent_error("cannot read the plan %s: %m", path);
	text = malloc(st.st_size + 1);
	if (!text)
		agent_error("not enough memory to read the plan %s", path);
	status = read_all(fd, text, st.st_size);
	if (status)
		agent_error("cannot read the plan %s: %s", path, strerror(-status));
	close(fd);
	if (plan_parse(text, st.st_size, plan, error))
		agent_error("%s", error);
	free(text);
}

static void run_plan(const struct plan *plan)
{
	int i;

	perturb(plan->seed);
	for (i = 0; i < plan->nr_trials; i++)
		trial_run(&plan->trials[i], plan->seed);
	record_bye(plan->nr_trials);
}

static void list(void)
{
	const struct workload *w;
	const char *const *p;
	int i;

	for (i = 0; (w = workload_at(i)); i++) {
		printf("%s: %s\n", w->name, w->summary);
		for (p = w->params; p && *p; p++)
			printf("    %s\n", *p);
	}
}

static int on_host(int argc, char **argv)
{
	struct plan plan;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		list();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--run-on-this-host")) {
		record_to(STDOUT_FILENO);
		load_plan(argv[2], &plan);
		record_hello();
		run_plan(&plan);
		plan_free(&plan);
		return 0;
	}
	fputs(argc == 1 ? "kteardown-agent: this is not the first process of a guest, so nothing "
			  "was run.\n"
			: "kteardown-agent: unknown arguments.\n",
	      stderr);
	fputs("Run `kteardown-agent --help` for the arguments that it takes.\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const struct applet *applet = applet_find(argv[0]);
	struct plan plan;

	if (applet)
		return applet->main(argc, argv);
	/* If the other end of a pipe is closed, the write fails; it does not end the agent. */
	signal(SIGPIPE, SIG_IGN);
	if (getpid() != 1)
		return on_host(argc, argv);
	boot_mounts();
	load_plan("/plan", &plan);
	boot_modules(&plan);
	record_to(boot_records_port());
	record_hello();
	boot_clock();
	record_settled();
	run_plan(&plan);
	power_off();
}
