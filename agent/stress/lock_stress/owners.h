/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Owners of locks on the bytes of one file: open files (OFD locks) and processes (POSIX locks),
 * each of which can lock, unlock, and lose its locks in all the ways that exist.
 */
#ifndef KTEARDOWN_LOCK_OWNERS_H
#define KTEARDOWN_LOCK_OWNERS_H

#include <sys/types.h>

#include "workload.h"

#define LOCK_FILE "/lock_stress"
#define LOCK_BYTES 32

enum order {
	ORDER_SET, /* a lock of `type` on the bytes from `first` on */
	ORDER_CLOSE, /* a file: its last descriptor. A process: another open file of the inode */
	ORDER_DUP, /* close one of two descriptors of the file: a file keeps its locks */
	ORDER_PASS, /* another task has the file while its owner closes it, or closes it itself */
	ORDER_SHARED_EXIT, /* a task that shares the descriptors exits */
	ORDER_SHARED_CLOSE, /* the same, after it has closed the file */
	NR_ORDERS
};

struct request {
	enum order order;
	short type; /* F_RDLCK, F_WRLCK, F_UNLCK */
	int first, bytes;
};

struct lock_owner {
	int fd; /* of an open file as owner */
	pid_t pid; /* of a process as owner; 0 if the owner is a file */
	int ask, answer;
};

int start_owner(struct lock_owner *o, bool process);
/* 0 if done, an errno if the lock was refused or something failed. */
int owner_do(struct lock_owner *o, const struct request *r);
/* False if all locks of this owner are lost with such an order. */
bool owner_keeps(const struct lock_owner *o, enum order order);
void owner_stop(struct lock_owner *o);

#endif
