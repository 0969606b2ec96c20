"""maps.py FILE: reads FILE, which is not cached, through a mapping, and once more. Prints how many major faults the kernel counted meanwhile.
maps.py FILE STEP: touches a page in each STEP bytes, without read-ahead."""
import mmap
import os
import resource
import sys

fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
if len(sys.argv) > 2:
    with mmap.mmap(fd, size, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) as data:
        data.madvise(mmap.MADV_RANDOM)
        sys.exit(sum(data[i] for i in range(0, size, int(sys.argv[2]))) == 0)
for _ in range(2):
    with mmap.mmap(fd, size, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) as data:
        assert sum(data[i] for i in range(0, size, 4096)) == size // 4096 * ord("x")
print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before)
