/* Where this copy of the library is: see copy.h. */
#include "sdk/session/copy.h"

#ifdef STAVE_I_COPY

#include <link.h>
#include <stdint.h>

/* The first object is the program. */
static int look(struct dl_phdr_info *info, size_t size, void *is_in_program)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)look - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
                info->dlpi_phdr[i].p_memsz)
            *(bool *)is_in_program = true;
    return 1;
}

bool sv_is_in_plugin(void)
{
    bool is_in_program = false;
    dl_iterate_phdr(look, &is_in_program);
    return !is_in_program;
}

#else

bool sv_is_in_plugin(void)
{
    return false;
}

#endif
