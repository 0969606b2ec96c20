/* The terminal as a screen: raw keys in, whole screens out, everything as it was afterwards, whatever ends the program. */
#ifndef SV_CMD_TERMINAL_H
#define SV_CMD_TERMINAL_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Takes over the terminal of this process (one at a time). SV_EUSAGE when there is none. */
int sv_terminal_open(struct sv_err *err);
void sv_terminal_close(void);

void sv_terminal_size(unsigned *width, unsigned *height);
void sv_terminal_write(const void *bytes, size_t n);

/* Waits for a key: its character, one of enum sv_key, or one of these. */
#define SV_TERMINAL_RESIZED 0x200000u /* the size changed, or the screen must be drawn anew */
#define SV_TERMINAL_ENDED   0x200001u /* a signal asks to end, or the terminal is gone */
uint32_t sv_terminal_key(void);
/* The signal that asked to end; 0: none. To be raised again after close. */
int sv_terminal_signal(void);
/* Gives the terminal back and stops the process; returns when it is continued. */
void sv_terminal_suspend(void);

#endif
