/* Which process: itself, one that has ended, another boot, another namespace. */
#include "core/files/process_id.h"

#include "tests/harness/test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(own_process_runs)
{
    struct sv_process_id id = sv_process_id_self();
    CHECK_INT_EQ(id.pid, getpid());
    CHECK(id.start_ticks != 0 && id.pid_namespace != 0);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_RUNS);
}

TEST(an_ended_process_is_gone)
{
    struct sv_process_id id = {0};
    int ends[2];
    CHECK_INT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        id = sv_process_id_self();
        _exit(write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
    }
    CHECK_INT_EQ(read(ends[0], &id, sizeof id), sizeof id);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_GONE); /* nobody has waited for it yet */
    waitpid(child, NULL, 0);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_GONE);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_reused_pid_is_another_process)
{
    struct sv_process_id id = sv_process_id_self(), other = id;
    other.start_ticks++;
    CHECK_INT_EQ(sv_process_id_state(&other), SV_PROCESS_GONE);
    CHECK(!sv_process_id_equal(&id, &other));
    other.start_ticks = 0;
    CHECK_INT_EQ(sv_process_id_state(&other), SV_PROCESS_GONE);
}

TEST(another_namespace_cannot_be_judged)
{
    struct sv_process_id id = sv_process_id_self();
    id.pid_namespace++;
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_UNKNOWN);
}

TEST(another_boot_of_this_machine_is_gone_of_another_unknown)
{
    static const uint8_t none[SV_BOOT_ID_BYTES];
    struct sv_process_id id = sv_process_id_self();
    id.boot[3] ^= 1;
    bool has_machine = memcmp(id.machine, none, sizeof none) != 0;
    CHECK_INT_EQ(sv_process_id_state(&id), has_machine ? SV_PROCESS_GONE : SV_PROCESS_UNKNOWN);
    id.machine[3] ^= 1;
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_UNKNOWN);
}

TEST(boot_id_as_the_kernel_writes_it)
{
    uint8_t id[SV_BOOT_ID_BYTES] = {0x12, 0xab, 0, 0xff, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    char text[SV_BOOT_TEXT];
    sv_boot_text(id, text);
    CHECK_STR_EQ(text, "12ab00ff-0506-0708-090a-0b0c0d0e0f10");
}
