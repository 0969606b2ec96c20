/* Three threads hold a mutex in turn, and their stamps are printed. */
#include "turns/turns.h"

pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;

static void take(void *lock)
{
    pthread_mutex_lock(lock);
}

static void give(void *lock)
{
    pthread_mutex_unlock(lock);
}

static void *work(void *arg)
{
    take_turns(&(struct turn_lock){take, give, &turns_lock}, arg);
    return NULL;
}

int main(void)
{
    pthread_t threads[TURN_THREADS];
    for (int i = 0; i < TURN_THREADS; i++)
        pthread_create(&threads[i], NULL, work, &turn_threads[i]);
    for (int i = 0; i < TURN_THREADS; i++)
        pthread_join(threads[i], NULL);
    print_turns();
    return 0;
}
