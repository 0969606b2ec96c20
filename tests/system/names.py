"""names.py OUT: uses files whose names are not what the program wrote, and says what the kernel calls them.

Each file gets a number of bytes of its own; a line of OUT is that number and the name, by /proc/self/fd. With root it also leaves the root folder."""
import os
import sys

out = open(sys.argv[1], "w")


def write(fd, n, name=None):
    name = name or os.readlink(f"/proc/self/fd/{fd}")
    os.write(fd, b"x" * n)
    os.close(fd)
    print(n, name, file=out, flush=True)


os.makedirs("real/sub")
os.makedirs("plain/sub")
os.symlink("real/sub", "lnk")
os.symlink(os.path.abspath("real/sub"), "far")
MAKE = os.O_CREAT | os.O_WRONLY
write(os.open("lnk/../a", MAKE), 101)
write(os.open(os.path.abspath("far") + "/.././b", MAKE), 102)
write(os.open("plain/sub/../c", MAKE), 103)
write(os.open("lnk/../sub/../d", MAKE), 104)
os.chdir("lnk")  # and from there: what the kernel has as its folder is not below lnk
write(os.open("../e", MAKE), 105)
os.chdir("../..")
write(os.memfd_create("weights of a model"), 106)
try:
    write(os.open("plain", os.O_TMPFILE | os.O_RDWR), 107)
    write(os.open("lnk/..", os.O_TMPFILE | os.O_RDWR), 108)
except OSError:
    print("no O_TMPFILE", file=out)
here = os.getcwd()
os.makedirs("jail/etc")
pid = os.fork()
if pid == 0:
    os.chroot("jail")
    write(os.open("plain/f", MAKE), 109, here + "/plain/f")  # its folder is still outside
    os.chdir("/")
    write(os.open("/etc/g", MAKE), 110, here + "/jail/etc/g")
    write(os.open("../../etc/h", MAKE), 111, here + "/jail/etc/h")
    write(os.open("/etc/../../etc/i", MAKE), 112, here + "/jail/etc/i")
    os._exit(0)
os.waitpid(pid, 0)
