/* The terminal: raw mode, alternate screen, keys, signals. Used by `stave show` and `stave top`.
 *
 * Signals are blocked except while waiting for a key, so nothing is interrupted elsewhere. Signals
 * of a crash restore the terminal before they end the process, and so does exit(). The state is
 * global because signal handlers need it. */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct {
    int fd;
    struct termios before;
    sigset_t waiting; /* the mask while waiting for a key */
    volatile sig_atomic_t is_on, is_resized, ended_by;
} terminal = {.fd = -1};

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
#define LEAVE "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

void sv_terminal_write(const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n) {
        ssize_t done = write(terminal.fd, at, n);
        if (done < 0 && errno != EINTR)
            return;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

/* Only calls that a signal handler may make. */
static void restore(void)
{
    if (!terminal.is_on)
        return;
    terminal.is_on = 0;
    sv_terminal_write(LEAVE, sizeof LEAVE - 1);
    tcsetattr(terminal.fd, TCSAFLUSH, &terminal.before);
}

static void take_over(void)
{
    struct termios raw = terminal.before;
    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(terminal.fd, TCSAFLUSH, &raw);
    sv_terminal_write(ENTER, sizeof ENTER - 1);
    terminal.is_on = 1;
}

static void on_ending(int signal)
{
    terminal.ended_by = signal;
}

static void on_resize(int signal)
{
    (void)signal;
    terminal.is_resized = 1;
}

static void on_crash(int signal)
{
    restore();
    raise(signal); /* the default, since the handler was taken off */
}

static void set_handler(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void set_signals(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        sigaddset(&blocked, ending[i]);
        set_handler(ending[i], on_ending, 0);
    }
    for (size_t i = 0; i < sizeof crashing / sizeof *crashing; i++)
        set_handler(crashing[i], on_crash, (int)SA_RESETHAND);
    sigaddset(&blocked, SIGWINCH);
    set_handler(SIGWINCH, on_resize, 0);
    sigprocmask(SIG_BLOCK, &blocked, &terminal.waiting);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigdelset(&terminal.waiting, ending[i]);
    sigdelset(&terminal.waiting, SIGWINCH);
}

int sv_terminal_open(struct sv_err *err)
{
    terminal.fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal.fd < 0 || tcgetattr(terminal.fd, &terminal.before) < 0)
        return sv_error(err, SV_EUSAGE, "no terminal found; use --once to print one screen");
    terminal.ended_by = terminal.is_resized = 0;
    atexit(restore);
    set_signals();
    take_over();
    return 0;
}

void sv_terminal_close(void)
{
    restore();
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        set_handler(ending[i], SIG_DFL, 0);
    sigprocmask(SIG_SETMASK, &terminal.waiting, NULL);
    if (terminal.fd >= 0)
        close(terminal.fd);
    terminal.fd = -1;
}

int sv_terminal_signal(void)
{
    return terminal.ended_by;
}

void sv_terminal_size(unsigned *width, unsigned *height)
{
    struct winsize size = {0};
    int fd = terminal.fd >= 0 ? terminal.fd : STDOUT_FILENO;
    *width = 80;
    *height = 24;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        *width = size.ws_col;
        *height = size.ws_row;
    }
}

void sv_terminal_suspend(void)
{
    restore();
    set_handler(SIGTSTP, SIG_DFL, 0);
    raise(SIGTSTP);
    take_over();
    terminal.is_resized = 1;
}

/* ---- keys ---- */

/* The next byte within a few milliseconds, as the rest of a sequence comes; -1: none. */
static int more_byte(void)
{
    struct pollfd wait = {.fd = terminal.fd, .events = POLLIN};
    unsigned char byte;
    return poll(&wait, 1, 60) > 0 && read(terminal.fd, &byte, 1) == 1 ? byte : -1;
}

/* What follows ESC [ or ESC O: a number or a letter. */
static uint32_t sequence(void)
{
    static const struct {
        char letter;
        uint32_t key;
    } letters[] = {{'A', SV_KEY_UP},      {'B', SV_KEY_DOWN}, {'C', SV_KEY_RIGHT},
                   {'D', SV_KEY_LEFT},    {'H', SV_KEY_HOME}, {'F', SV_KEY_END},
                   {'Z', SV_KEY_BACK_TAB}};
    static const uint32_t numbers[] = {
        [1] = SV_KEY_HOME,      [4] = SV_KEY_END,  [5] = SV_KEY_PAGE_UP,
        [6] = SV_KEY_PAGE_DOWN, [7] = SV_KEY_HOME, [8] = SV_KEY_END};
    unsigned number = 0;
    bool is_first = true;
    for (int byte = more_byte(), n = 0; byte >= 0 && n < 16; byte = more_byte(), n++) {
        if (byte >= '0' && byte <= '9' && is_first) {
            number = number * 10 + (unsigned)(byte - '0');
        } else if (byte == '~') {
            return number < sizeof numbers / sizeof *numbers ? numbers[number] : SV_KEY_NONE;
        } else if (byte >= '@') {
            for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
                if (letters[i].letter == byte)
                    return letters[i].key;
            return SV_KEY_NONE;
        } else {
            is_first = false; /* modifiers */
        }
    }
    return SV_KEY_NONE;
}

static uint32_t decode(unsigned char first)
{
    if (first == 27) {
        int next = more_byte();
        return next == '[' || next == 'O' ? sequence() : SV_KEY_ESCAPE;
    }
    if (first == '\n')
        return SV_KEY_ENTER;
    if (first < 0xc0)
        return first < 0x80 ? first : SV_KEY_NONE;
    unsigned more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    uint32_t code = first & (0x3fu >> more);
    for (unsigned i = 0; i < more; i++) {
        int byte = more_byte();
        if (byte < 0 || (byte & 0xc0) != 0x80)
            return SV_KEY_NONE;
        code = code << 6 | ((unsigned)byte & 0x3f);
    }
    return code < SV_KEY_UP ? code : SV_KEY_NONE;
}

uint32_t sv_terminal_key(void)
{
    struct pollfd wait = {.fd = terminal.fd, .events = POLLIN};
    unsigned char byte;
    for (;;) {
        if (terminal.ended_by)
            return SV_TERMINAL_ENDED;
        if (terminal.is_resized) {
            terminal.is_resized = 0;
            return SV_TERMINAL_RESIZED;
        }
        int ready = ppoll(&wait, 1, NULL, &terminal.waiting);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0 || read(terminal.fd, &byte, 1) != 1)
            return SV_TERMINAL_ENDED;
        return decode(byte);
    }
}

uint32_t sv_terminal_key_now(void)
{
    struct pollfd wait = {.fd = terminal.fd, .events = POLLIN};
    unsigned char byte;
    if (terminal.ended_by)
        return SV_TERMINAL_ENDED;
    if (poll(&wait, 1, 0) <= 0)
        return SV_KEY_NONE;
    return read(terminal.fd, &byte, 1) == 1 ? decode(byte) : SV_TERMINAL_ENDED;
}
