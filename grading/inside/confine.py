"""Enter a sandbox that bubblewrap has set up, and give up every power before the student's code runs.

Linux only. The system calls are the ones of nsenter(1), setpriv(1) and prlimit(1); they stand here because a forked
process that already holds NumPy can't go through those programs, which would start anew.
"""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import struct

NAMESPACES = {"mnt": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000,
              "pid": 0x20000000, "net": 0x40000000}
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 22, 24, 38, 47
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


# Doors into the kernel that no notebook needs: new namespaces (powers inside them widen what can be attacked), mounts,
# other processes' memory, keyrings, BPF, modules. Numbers of x86_64 and aarch64.
FORBIDDEN = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsmount": (432, 432),
    "mount_setattr": (442, 442), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
}
CLONE, CLONE3, SOCKET = (56, 220), (435, 435), (41, 198)
NEW_NAMESPACE = 0x7E020080  # all CLONE_NEW… flags
FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink; a virtual machine's AF_VSOCK, say, knows no network namespace
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _filter(column, architecture):
    """The program in classic BPF: (code, jump if true, jump if false, constant)."""
    load, equal, greater, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse = lambda number: (answer, 0, 0, 0x00050000 | number)
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), refuse(errno.EPERM), (load, 0, 0, 0),
               (greater, 0, 1, 0x40000000), refuse(errno.EPERM)]  # x86_64's x32 calls have other numbers
    for numbers in FORBIDDEN.values():
        program += [(equal, 0, 1, numbers[column]), refuse(errno.EPERM)]
    program += [(equal, 0, 1, CLONE3[column]), refuse(errno.ENOSYS)]  # its flags can't be seen; libc falls back to clone
    program += [(equal, 0, 4, CLONE[column]), (load, 0, 0, 16), (any_bit, 0, 1, NEW_NAMESPACE), refuse(errno.EPERM),
                (answer, 0, 0, 0x7FFF0000)]
    program += [(equal, 1, 0, SOCKET[column]), (answer, 0, 0, 0x7FFF0000), (load, 0, 0, 16)]
    for number, family in enumerate(FAMILIES):
        program.append((equal, len(FAMILIES) - number, 0, family))
    return [*program, refuse(errno.EAFNOSUPPORT), (answer, 0, 0, 0x7FFF0000)]


def forbid_system_calls():
    """Have the kernel refuse what is in FORBIDDEN, for this process and all that it starts."""
    if platform.machine() not in MACHINES:
        return
    program = b"".join(struct.pack("HBBI", *step) for step in _filter(*MACHINES[platform.machine()]))
    steps = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps)))
    _check(_libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(header)), 0, 0))


def die_with_parent():
    """Have the system kill this process when the one that started it ends."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
