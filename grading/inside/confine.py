"""Enter a sandbox that bubblewrap has set up, and give up every power before the student's code runs.

Linux only. The system calls are the ones of nsenter(1), setpriv(1) and prlimit(1); they stand here because a forked
process that already holds NumPy can't go through those programs, which would start anew.
"""

import contextlib
import ctypes
import os
import resource
import signal

NAMESPACES = {"mnt": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000,
              "pid": 0x20000000, "net": 0x40000000}
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 24, 38, 47
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter(pid):
    """Join all namespaces of a process that differ from ours. The next fork is in its process namespace."""
    flags = 0
    for name, flag in NAMESPACES.items():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/ns/{name}") != os.readlink(f"/proc/{pid}/ns/{name}"):
                flags |= flag
    descriptor = os.pidfd_open(pid)
    _check(_libc.setns(descriptor, flags))
    os.close(descriptor)


def give_up_powers(uid, limits):
    """No capability, no way to gain one, another user (if we are root), and limits on everything.

    `limits` maps names of `resource` without RLIMIT_ to numbers.
    """
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # beyond the last one that this kernel knows
    _libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)  # clear all; kernels without ambient sets refuse, and need it not
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()))
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # or /proc/self would belong to root


def die_with_parent():
    """Have the system kill this process when the one that started it ends."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
