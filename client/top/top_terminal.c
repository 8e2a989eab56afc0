/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ncurses gives the terminal back in endwin(), which a signal handler must not call. So there are
 * two ways. A signal that asks for the end is noted, and the program ends as by its key; if that
 * does not come about within ENDING_S, or another signal comes, the handler itself writes what it
 * prepared when the terminal was taken, restores the terminal's modes and ends the process. So does
 * the handler of a fault, which then lets the fault take its course. The variables of this file are
 * its only state, and they are here because a signal handler has no argument to find them through.
 */
#include "top_terminal.h"

#include "cleanup.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#define NCURSES_NOMACROS 1
#include <curses.h>
#include <term.h>

#define ENDING_S        3
#define LAST_BYTES      ((size_t)256)
#define HANDLER_STACK   ((size_t)64 << 10)
#define ESCAPE_DELAY_MS 25

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int noted_signals[] = {SIGTSTP, SIGWINCH, SIGCONT};
static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static SCREEN *screen;
static struct termios modes_before;
static char last_bytes[LAST_BYTES]; /* what a terminal is given back by */
static size_t last_count;
static int pipe_fds[2] = {-1, -1};
static volatile sig_atomic_t is_taken;
static volatile sig_atomic_t end_count;

/* Safe in a handler. A terminal that takes no output, as one that is stopped, is not waited for. */
static void give_back_at_once(void)
{
    struct pollfd terminal = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (is_taken == 0) {
        return;
    }
    is_taken = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
    if (poll(&terminal, 1, 0) > 0 && (terminal.revents & POLLOUT) != 0) {
        (void)!write(STDOUT_FILENO, last_bytes, last_count);
    }
}

static void on_signal(int number)
{
    int saved_errno = errno;
    char byte = (char)number;
    (void)!write(pipe_fds[1], &byte, 1);
    errno = saved_errno;
}

/* In the background the terminal's modes are changed all the same: it would stop there again. */
static void on_ending(int number)
{
    (void)signal(SIGTTOU, SIG_IGN);
    if (end_count > 0) {
        give_back_at_once();
        _exit(EXIT_FAILURE);
    }
    end_count = 1;
    (void)alarm(ENDING_S);
    on_signal(number);
}

static void on_fault(int number)
{
    give_back_at_once();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* A signal that was ignored when the program started stays ignored. */
static void handle(const int *numbers, size_t count, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < count; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}

/* Before ncurses: it leaves handlers alone that are there. */
static int take_signals(void)
{
    static char handler_stack[HANDLER_STACK];
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    static const int alarms[] = {SIGALRM};
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -errno;
    }
    (void)sigaltstack(&stack, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    handle(ending_signals, COUNT(ending_signals), on_ending, SA_RESTART);
    handle(alarms, COUNT(alarms), on_ending, SA_RESTART);
    handle(noted_signals, COUNT(noted_signals), on_signal, SA_RESTART);
    handle(fault_signals, COUNT(fault_signals), on_fault, SA_ONSTACK | (int)SA_RESETHAND);
    return 0;
}

static int keep_byte(int byte)
{
    if (last_count < sizeof last_bytes) {
        last_bytes[last_count++] = (char)byte;
    }
    return byte;
}

/* What undoes attributes, the hidden cursor, the keypad's mode and the other screen. */
static void prepare_last_bytes(void)
{
    static const char *const names[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    last_count = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *text = tigetstr(names[i]);
        if (text != NULL && text != (const char *)-1) {
            (void)tputs(text, 1, keep_byte);
        }
    }
}

static void set_modes(void)
{
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)intrflush(stdscr, FALSE);
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
}

int top_terminal_check(struct fault *reterr)
{
    int known = 0;
    if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) {
        return fault_set(reterr, ENOTTY,
                         "standard %s is not a terminal; -b prints without one, and --json for "
                         "programs",
                         isatty(STDOUT_FILENO) == 0 ? "output" : "input");
    }
    if (setupterm(NULL, STDOUT_FILENO, &known) == ERR) {
        return fault_set(reterr, EINVAL,
                         "this machine does not know terminals as '%s', which TERM says that this "
                         "one is; set TERM, perhaps to xterm, or take -b",
                         getenv("TERM") == NULL ? "" : getenv("TERM"));
    }
    if (cursor_address == NULL) {
        return fault_set(reterr, ENOTTY,
                         "a terminal of the kind '%s' cannot move its cursor; -b prints without "
                         "that, and --json for programs",
                         getenv("TERM"));
    }
    (void)setlocale(LC_CTYPE, "");
    return 0;
}

int top_terminal_open(struct fault *reterr)
{
    if (tcgetattr(STDIN_FILENO, &modes_before) < 0) {
        return fault_set(reterr, errno, "the terminal: %s", strerror(errno));
    }
    int r = take_signals();
    if (r < 0) {
        return fault_set(reterr, -r, "cannot take signals: %s", strerror(-r));
    }
    prepare_last_bytes();
    is_taken = 1;
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        give_back_at_once();
        return fault_set(reterr, EIO, "the terminal cannot be set up; take -b");
    }
    set_modes();
    (void)set_escdelay(ESCAPE_DELAY_MS);
    return 0;
}

void top_terminal_close(void)
{
    if (screen != NULL) {
        (void)endwin();
        is_taken = 0;
        delscreen(screen);
        screen = NULL;
    }
    (void)alarm(0);
}

int top_terminal_fd(void)
{
    return pipe_fds[0];
}

void top_terminal_add_faults(sigset_t *signals)
{
    for (size_t i = 0; i < COUNT(fault_signals); i++) {
        (void)sigaddset(signals, fault_signals[i]);
    }
}

struct top_signals top_terminal_signals(void)
{
    struct top_signals signals = {.is_ending = end_count > 0};
    char bytes[64];
    ssize_t count = 0;
    while ((count = read(pipe_fds[0], bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < count; i++) {
            signals.is_suspending = signals.is_suspending || bytes[i] == SIGTSTP;
            signals.is_resized = signals.is_resized || bytes[i] == SIGWINCH;
            signals.is_continued = signals.is_continued || bytes[i] == SIGCONT;
        }
    }
    return signals;
}

void top_terminal_suspend(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    struct sigaction own;
    (void)endwin();
    is_taken = 0;
    /* As the kernel does it: a process that no shell would continue is not stopped. */
    (void)sigaction(SIGTSTP, &usual, &own);
    (void)raise(SIGTSTP);
    (void)sigaction(SIGTSTP, &own, NULL);
    is_taken = 1;
}

void top_terminal_retake(void)
{
    (void)reset_prog_mode();
    top_terminal_resize();
    (void)clearok(curscr, TRUE);
}

void top_terminal_resize(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        (void)resizeterm(size.ws_row, size.ws_col);
    }
}

bool top_terminal_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
