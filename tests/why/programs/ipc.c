/* What threads and processes of C wait for besides mutexes, pipes and plain sockets: ipc
 * flock | record | semop | mq | event | barrier | pool | msync | udp | quota | copy.
 *
 * flock, record: another process has locked the file. semop: it has the System V semaphore. mq: it
 * sends to a message queue late. event: a thread of a pool answers through an eventfd. barrier: one
 * of three threads comes late. pool: others have the two connections of a pool. msync: a mapped
 * checkpoint is written back. udp: a resolver answers a datagram late. quota: the group has 30 % of
 * a CPU. copy: each step copies a file within the kernel and syncs it. */
#define _GNU_SOURCE
#include "truth.h"

#include <arpa/inet.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { STEPS = 30, WORK = 10, LATE = 30, MIB = 1 << 20 };

static struct why why;
static int64_t waited;

static pid_t start(const char *name, void (*run)(void))
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    run();
    _exit(0);
}

static void steps(void (*step)(int))
{
    why_begin(&why);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        why_spin_ms(WORK);
        int64_t begin = why_now();
        step(i);
        waited += why_now() - begin;
    }
    why_end(&why);
}

static void done(const char *words, const char *culprit, pid_t child)
{
    if (child) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    why_cause(&why, words, waited, culprit);
    why_write(&why, "step", STEPS, 1);
}

/* ---- locks of files ---- */

static int file;
static bool by_record;

static void lock_file(int how)
{
    struct flock all = {.l_type = how == LOCK_UN ? F_UNLCK : F_WRLCK, .l_whence = SEEK_SET};
    if (by_record)
        fcntl(file, F_SETLKW, &all);
    else
        flock(file, how);
}

__attribute__((noinline)) static void archive(void)
{
    if (!by_record) /* a lock of its own */
        file = why_file("store.db", O_RDWR);
    for (;;) {
        lock_file(LOCK_EX);
        why_sleep_ms(LATE);
        lock_file(LOCK_UN);
        why_sleep_ms(2);
    }
}

__attribute__((noinline)) static void update(int i)
{
    lock_file(LOCK_EX);
    if (pwrite(file, &i, sizeof i, 0) < 0)
        abort();
    lock_file(LOCK_UN);
}

static void run_file(bool record)
{
    by_record = record;
    file = why_file("store.db", O_RDWR | O_CREAT);
    pid_t child = start("archiver", archive);
    why_sleep_ms(20);
    steps(update);
    done("\"lock\"", "\"name\": \"archiver\"", child);
}

/* ---- System V, message queues ---- */

static int semaphore;

static void change(int by)
{
    struct sembuf b = {.sem_op = (short)by, .sem_flg = 0};
    semop(semaphore, &b, 1);
}

static void keep_semaphore(void)
{
    for (;;) {
        change(-1);
        why_sleep_ms(LATE);
        change(1);
        why_sleep_ms(2);
    }
}

static void use_semaphore(int i)
{
    (void)i;
    change(-1);
    change(1);
}

static void run_semop(void)
{
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    change(1);
    pid_t child = start("keeper", keep_semaphore);
    why_sleep_ms(20);
    steps(use_semaphore);
    done("\"lock\", \"data\", \"pipe\"", "\"name\": \"keeper\"", child);
    semctl(semaphore, 0, IPC_RMID);
}

static mqd_t queue;

static void send_late(void)
{
    for (;;) {
        why_spin_ms(LATE);
        mq_send(queue, "x", 1, 0);
    }
}

static void receive(int i)
{
    char text[64];
    (void)i;
    if (mq_receive(queue, text, sizeof text, NULL) < 0)
        abort();
}

static void run_mq(void)
{
    struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 64};
    char name[64];
    snprintf(name, sizeof name, "/why.%d", (int)getpid());
    queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
    if (queue == (mqd_t)-1)
        abort();
    mq_unlink(name);
    pid_t child = start("publisher", send_late);
    steps(receive);
    done("\"pipe\", \"data\"", "\"name\": \"publisher\"", child);
}

/* ---- threads ---- */

static int asked, answered;

__attribute__((noinline)) static void look_up(void)
{
    why_spin_ms(LATE);
}

static void *serve_events(void *unused)
{
    uint64_t one = 1;
    prctl(PR_SET_NAME, "lookup");
    while (read(asked, &one, sizeof one) > 0) {
        look_up();
        if (write(answered, &one, sizeof one) < 0)
            break;
    }
    return unused;
}

static void ask_event(int i)
{
    uint64_t one = 1;
    struct pollfd p = {.fd = answered, .events = POLLIN};
    (void)i;
    if (write(asked, &one, sizeof one) < 0 || poll(&p, 1, -1) < 0 ||
        read(answered, &one, sizeof one) < 0)
        abort();
}

static void run_event(void)
{
    pthread_t thread;
    asked = eventfd(0, 0);
    answered = eventfd(0, 0);
    pthread_create(&thread, NULL, serve_events, NULL);
    steps(ask_event);
    done("\"data\"", "\"name\": \"lookup\"", 0);
}

static pthread_barrier_t barrier;

static void *meet(void *name)
{
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < STEPS; i++) {
        if (strcmp(name, "laggard") == 0)
            look_up();
        why_sleep_ms(1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void meet_others(int i)
{
    (void)i;
    pthread_barrier_wait(&barrier);
}

static void run_barrier(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&threads[0], NULL, meet, "quick");
    pthread_create(&threads[1], NULL, meet, "laggard");
    steps(meet_others);
    done("\"lock\", \"data\"", "\"name\": \"laggard\"", 0);
}

static sem_t connections;
static bool is_over;

__attribute__((noinline)) static void use_connection(void)
{
    sem_wait(&connections);
    why_sleep_ms(LATE);
    sem_post(&connections);
}

static void *be_tenant(void *unused)
{
    prctl(PR_SET_NAME, "tenant");
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        use_connection();
    return unused;
}

static void borrow(int i)
{
    (void)i;
    sem_wait(&connections);
    sem_post(&connections);
}

static void run_pool(void)
{
    pthread_t threads[4];
    sem_init(&connections, 0, 2);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, be_tenant, NULL);
    why_sleep_ms(5);
    steps(borrow);
    is_over = true;
    done("\"lock\", \"data\"", "\"name\": \"tenant\"", 0);
}

/* ---- files ---- */

static char *mapped;

__attribute__((noinline)) static void save_mapped(int i)
{
    int64_t begin = why_now();
    memset(mapped, i, 8 * MIB);
    waited -= why_now() - begin; /* it computes, but for faults */
    if (msync(mapped, 8 * MIB, MS_SYNC) != 0)
        abort();
}

static void run_msync(void)
{
    int fd = why_file("weights.map", O_RDWR | O_CREAT);
    if (ftruncate(fd, 8 * MIB) != 0)
        abort();
    mapped = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    steps(save_mapped);
    done("\"checkpoint\", \"disk\"", "\"function\": \"save_mapped\"", 0);
}

__attribute__((noinline)) static void copy_model(int i)
{
    off_t from = 0, to = 0;
    int target = why_file("copy.bin", O_RDWR | O_CREAT | O_TRUNC);
    (void)i;
    while (to < 16 * MIB && copy_file_range(file, &from, target, &to, 16 * MIB - to, 0) > 0)
        ;
    fsync(target);
    close(target);
}

static void run_copy(void)
{
    file = why_file("model.bin", O_RDWR | O_CREAT);
    char *bytes = calloc(1, 16 * MIB);
    if (!bytes || write(file, bytes, 16 * MIB) < 0)
        abort();
    steps(copy_model);
    done("\"checkpoint\", \"disk\"", "\"path\": \"copy.bin\"", 0);
}

/* ---- others ---- */

static int datagrams;
static struct sockaddr_in resolver;

static void answer_late(void)
{
    char text[64];
    struct sockaddr_in from;
    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(datagrams, text, sizeof text, 0, (struct sockaddr *)&from, &len);
        why_spin_ms(LATE);
        if (n < 0 || sendto(datagrams, text, (size_t)n, 0, (struct sockaddr *)&from, len) < 0)
            return;
    }
}

__attribute__((noinline)) static void resolve(int i)
{
    static int own = -1;
    char text[64];
    if (own < 0)
        own = socket(AF_INET, SOCK_DGRAM, 0);
    if (sendto(own, &i, sizeof i, 0, (struct sockaddr *)&resolver, sizeof resolver) < 0 ||
        recvfrom(own, text, sizeof text, 0, NULL, NULL) < 0)
        abort();
}

static void run_udp(void)
{
    socklen_t len = sizeof resolver;
    datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    resolver =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(datagrams, (struct sockaddr *)&resolver, sizeof resolver) < 0 ||
        getsockname(datagrams, (struct sockaddr *)&resolver, &len) < 0)
        abort();
    pid_t child = start("resolver", answer_late);
    steps(resolve);
    done("\"peer\"", "\"name\": \"resolver\"", child);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
}

static void compute(int i)
{
    (void)i;
    why_spin_ms(WORK);
}

/* The old control groups of the CPU: docker and Kubernetes set the same limits. */
static void run_quota(void)
{
    char folder[128], own[32];
    snprintf(own, sizeof own, "%d", (int)getpid());
    snprintf(folder, sizeof folder, "/sys/fs/cgroup/cpu/why.%s", own);
    if (mkdir(folder, 0700) != 0)
        abort();
    put(folder, "cpu.cfs_period_us", "50000");
    put(folder, "cpu.cfs_quota_us", "15000");
    /* The judge gives programs a priority that such a group does not take. */
    struct sched_param usual = {0};
    sched_setscheduler(0, SCHED_OTHER, &usual);
    put(folder, "tasks", own);
    steps(compute);
    put("/sys/fs/cgroup/cpu", "tasks", own);
    rmdir(folder);
    waited = why.delay;
    why.delay = 0;
    done("\"cpu\"", "", 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"semop", run_semop}, {"mq", run_mq},       {"event", run_event},
                 {"pool", run_pool},   {"msync", run_msync}, {"barrier", run_barrier},
                 {"udp", run_udp},     {"quota", run_quota}, {"copy", run_copy}};
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "flock") == 0 || strcmp(how, "record") == 0)
        run_file(strcmp(how, "record") == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(how, cases[i].name) == 0)
            cases[i].run();
    return 0;
}
