/* Interns the vocabulary of I/O and kernel events. Called by the recorder's decoder. */
#include "subjects/io/words.h"

void sv_kernel_words_init(struct sv_kernel_words *w, struct sv_dict *dict)
{
#define INTERN(member, text) w->member = sv_dict_cstr(dict, text);
    SV_KERNEL_WORDS(INTERN)
#undef INTERN
}
