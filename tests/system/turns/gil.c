/* Python's interpreter lock, held in turn: a module for ctypes (gil.py). Needs no header of Python.
 *
 * From the first turn to the last one, no thread executes Python: else it would hold the lock
 * without a stamp. */
#include "turns.h"

#define API __attribute__((visibility("default")))

void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *thread);
API void prepare(void);
API void hold_in_turn(int number);
API void wait_for_turns(void);

static pthread_barrier_t begin, end;

static void take(void *thread)
{
    PyEval_RestoreThread(*(void **)thread);
}

static void give(void *thread)
{
    *(void **)thread = PyEval_SaveThread();
}

void prepare(void)
{
    pthread_barrier_init(&begin, NULL, TURN_THREADS + 1);
    pthread_barrier_init(&end, NULL, TURN_THREADS + 1);
}

/* Called with the lock held. Does not return: the process ends. */
void hold_in_turn(int number)
{
    void *thread;
    give(&thread);
    pthread_barrier_wait(&begin);
    take_turns(&(struct turn_lock){take, give, &thread}, &turn_threads[number]);
    pthread_barrier_wait(&end);
    for (;;)
        pause();
}

/* Called without the lock. */
void wait_for_turns(void)
{
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    print_turns();
    _exit(0);
}
