"""confine.py [--seccomp] [--landlock FOLDER] UID COMMAND…: runs the command as a container's user would: no capabilities, no new ones, with --seccomp a filter like Docker's
default profile, which refuses what needs capabilities (bpf, perf_event_open, mount, …) with EPERM and allows process_vm_readv, and with --landlock the right to write
to files below one folder only (exit code 77: this kernel has no Landlock)."""
import ctypes
import os
import struct
import sys

# x86-64: acct, add_key, bpf, delete_module, finit_module, init_module, kexec_load, keyctl, mount, open_by_handle_at, perf_event_open, pivot_root, quotactl,
# reboot, request_key, setns, swapon, swapoff, umount2, unshare, userfaultfd, move_mount, open_tree, fsopen
DENIED = (163, 248, 321, 176, 313, 175, 246, 250, 165, 304, 298, 155, 179, 169, 249, 308, 167, 168, 166, 272, 323, 429, 428, 430)
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO_EPERM = 0x7FFF0000, 0x00050001


def refuse(libc):
    program = [(LOAD, 0, 0, 0)]  # the number of the call
    for i, number in enumerate(DENIED):
        program.append((EQUAL, len(DENIED) - i, 0, number))
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO_EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    if libc.prctl(22, 2, head, 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")


# Numbers of system calls and rights of Landlock's first version: execute, read a file or folder; all of them.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READS, ALL, WRITE_FILE, PATH_BENEATH = 0b1101, 0x1FFF, 0b10, 1


def allow_below(libc, folder):
    ruleset = libc.syscall(CREATE_RULESET, struct.pack("Q", ALL), 8, 0)
    if ruleset < 0:
        sys.exit(77)
    for path, rights in (("/", READS), (folder, ALL), ("/dev/null", WRITE_FILE | READS & ~8)):
        rule = struct.pack("=Qi", rights & (ALL if os.path.isdir(path) else 0b111), os.open(path, os.O_PATH | os.O_CLOEXEC))
        if libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), f"landlock: {path}")
    if libc.syscall(RESTRICT_SELF, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock")


def main(words):
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp = words[0] == "--seccomp"
    words = words[seccomp:]
    folder = words[1] if words[0] == "--landlock" else None
    words = words[2 if folder else 0:]
    uid, command = int(words[0]), words[1:]
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if folder:
        allow_below(libc, folder)
    if seccomp:
        refuse(libc)
    os.execvp(command[0], command)


main(sys.argv[1:])
