"""The numbers of the system calls that the filters name, by architecture."""

from typing import Final

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH values (linux/audit.h) by what ``platform.machine()`` says."""

_SHARED: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "open_tree_attr": 467,
}  # fmt: skip
"""Since Linux 5.1 a new call has the same number everywhere."""

_X86_64: Final = {
    "ioctl": 16, "socket": 41, "connect": 42, "bind": 49, "listen": 50, "socketpair": 53,
    "clone": 56, "ptrace": 101, "syslog": 103, "vhangup": 153, "pivot_root": 155, "chroot": 161,
    "acct": 163, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "memfd_create": 319,
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66,
    "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "mq_open": 240, "mq_unlink": 241,
}  # fmt: skip

_AARCH64: Final = {
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "vhangup": 58,
    "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "socket": 198,
    "socketpair": 199, "bind": 200, "listen": 201, "connect": 203, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
    "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, "memfd_create": 279,
    "shmget": 194, "shmctl": 195, "shmat": 196, "semget": 190, "semctl": 191, "semtimedop": 192,
    "semop": 193, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189,
    "mq_open": 180, "mq_unlink": 181,
}  # fmt: skip

NUMBERS: Final = {"x86_64": _X86_64 | _SHARED, "aarch64": _AARCH64 | _SHARED}
