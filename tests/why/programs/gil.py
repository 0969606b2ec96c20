"""A thread in pure Python takes the interpreter lock from the steps. --healthy: the thread waits in C."""
import threading
import time

from truth import HEALTHY, Run, name_thread, spin

done = False


def hog():
    name_thread("hog")
    while not done:
        if HEALTHY:
            time.sleep(0.005)
        else:
            count_words()


def count_words():
    x = 0
    for i in range(20000):
        x += i % 7
    return x


thread = threading.Thread(target=hog)
thread.start()
run = Run()
for i in run.loop(40):
    spin(0.02)
done = True
thread.join()
if not HEALTHY:
    # The main thread waits for nothing else.
    run.cause("gil", run.waited(), name="hog", function=["count_words", "hog"], file="gil.py")
run.write()
