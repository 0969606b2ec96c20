"""blame.py STAMPS REPORT LOCK: who waited for whom by the stamps of turns.h, against the table `lock` of 'stave report wait --csv'.

From one release of the lock to the next one, the next thread to release it is who the others wait for: it holds the lock, or it is about to get it. A thread
waits from asking until the release before it got the lock; giving the lock up waits, too, where Python has it taken over by another thread first.

Each pair of threads must be within 1 %. Time in which a thread could have had the lock, but waited for a CPU (queued_ns) is nobody's: another may be quicker, and the
stamps do not say which release woke whom. It counts as tolerance; on a machine with free CPUs it is some tenths of a millisecond."""
import collections
import csv
import sys

stamps, report, lock = sys.argv[1:]
turns = sorted((tuple(map(int, line.split())) for line in open(stamps)), key=lambda t: t[3])  # tid, asked, got, gives, gave
truth, recorded, queued = collections.Counter(), collections.Counter(), 0


def blame(tid, begin, end):
    """The time from begin to end, divided at the releases in it."""
    for holder, _, _, gives, _ in turns:
        if gives > begin and holder != tid:
            truth[tid, holder] += min(gives, end) - begin
            begin = gives
        if begin >= end:
            return


for i, (tid, asked, got, gives, gave) in enumerate(turns):
    released = max((t[3] for t in turns if asked < t[3] <= got), default=asked)
    blame(tid, asked, released)
    if i + 1 < len(turns) and turns[i + 1][0] != tid:
        truth[tid, turns[i + 1][0]] += max(min(turns[i + 1][2], gave) - gives, 0)

tids = {t[0] for t in turns}
for row in csv.DictReader(open(report)):
    words = row["thread"].rstrip(")").split()
    tid = int(words[-1])
    if row["lock"] == lock and tid in tids and row["releaser_tid"] and int(row["releaser_tid"]) in tids:
        recorded[tid, int(row["releaser_tid"])] += int(row["total_ns"])
        queued += int(row["queued_ns"])

bad = 0
for pair in sorted(truth.keys() | recorded.keys()):
    t, r = truth[pair], recorded[pair]
    # Pairs that hardly ever met are judged by what the waiting thread lost in all.
    of = max(t, sum(ns for (tid, _), ns in truth.items() if tid == pair[0]) / 4)
    bad += abs(r - t) > of / 100 + queued
    print(f"  {pair[0]} for {pair[1]}: {r / 1e6:.3f} ms recorded, {t / 1e6:.3f} ms by its stamps, {(r - t) / of * 100:+.2f} %")
print(f"  {queued / 1e6:.3f} ms for a CPU")
sys.exit(bad > 0 or len(truth) < len(tids))
