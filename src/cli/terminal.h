/* The terminal as a screen: raw keys in, whole screens out. Its state is restored at the end, also
 * after a signal. */
#pragma once

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Keys that are not characters. */
enum sv_key {
    SV_KEY_NONE = 0,
    SV_KEY_TAB = 9,
    SV_KEY_ENTER = 13,
    SV_KEY_ESCAPE = 27,
    SV_KEY_BACKSPACE = 127,
    SV_KEY_UP = 0x110000, /* past all characters */
    SV_KEY_DOWN,
    SV_KEY_LEFT,
    SV_KEY_RIGHT,
    SV_KEY_HOME,
    SV_KEY_END,
    SV_KEY_PAGE_UP,
    SV_KEY_PAGE_DOWN,
    SV_KEY_BACK_TAB
};

/* Takes over the terminal of this process (one at a time). SV_EUSAGE when there is none. */
int sv_terminal_open(struct sv_err *err);
void sv_terminal_close(void);

void sv_terminal_size(unsigned *width, unsigned *height);
void sv_terminal_write(const void *bytes, size_t n);

/* Waits for a key: its character, one of enum sv_key, or one of these. */
#define SV_TERMINAL_RESIZED 0x200000u /* the size changed, or the screen must be drawn anew */
#define SV_TERMINAL_ENDED   0x200001u /* a signal asks to end, or the terminal is gone */
uint32_t sv_terminal_key(void);
/* The same at once; SV_KEY_NONE: there is no key. */
uint32_t sv_terminal_key_now(void);
/* The signal that asked to end; 0: none. To be raised again after close. */
int sv_terminal_signal(void);
/* Gives the terminal back and stops the process; returns when it is continued. */
void sv_terminal_suspend(void);
