"""MPI from Python, for tests/inject/mpi.sh: knows nothing of Stave."""
import threading

from mpi4py import MPI

world = MPI.COMM_WORLD
me, size = world.Get_rank(), world.Get_size()
right, left = (me + 1) % size, (me - 1) % size

for i in range(5):
    if me % 2 == 0:
        world.send({"round": i}, dest=right, tag=i)
    world.recv(source=left, tag=i)
    if me % 2:
        world.send({"round": i}, dest=right, tag=i)
assert world.allreduce(me) == size * (size - 1) // 2

half = world.Split(me % 2, me)
between = half.Create_intercomm(0, world, 1 - me % 2, 5)
if me % 2 == 0:
    between.send("x", dest=half.Get_rank(), tag=1)
else:
    between.recv(source=half.Get_rank(), tag=1)
assert between.Merge().allreduce(1) == size


def exchange(k):
    for _ in range(50):
        request = world.irecv(source=left, tag=100 + k)
        world.send(b"x" * k * 10, dest=right, tag=100 + k)
        request.wait()


threads = [threading.Thread(target=exchange, args=(k,)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
