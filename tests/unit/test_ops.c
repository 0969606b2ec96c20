/* Names of kernels as people read them, and operators that profiles of JAX and TensorFlow name. */
#include "core/base/buf.h"
#include "store/demangle.h"
#include "subjects/ops/figures.h"
#include "subjects/ops/kernel_name.h"
#include "tests/harness/test.h"

#include <string.h>

static const char *short_name(const char *exact)
{
    static struct sv_buf b;
    sv_buf_fini(&b);
    sv_buf_init(&b, 1u << 20);
    sv_kernel_short_name(&b, (struct sv_text){exact, (uint32_t)strlen(exact)});
    return sv_buf_cstr(&b);
}

TEST(ops_kernel_names_are_short)
{
    static const char *const names[][2] = {
        {"void gemm<float, 128>(float*, \"x\")", "gemm<…>"},
        {"void at::native::(anonymous namespace)::f<4, g<float> >(int, A<h>)", "at::native::f<…>"},
        {"Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"},
        {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
        {"void K<a>::operator()<b>(int)", "K<…>::operator()<…>"},
        {"bool operator< <T>(T, T)", "bool operator< <…>"},
        {"bool X::operator->(int)", "bool X::operator->"},
        {"void f<(A)1, (b)2>(int)::{lambda(int)#1}(x)", "f<…>::{lambda"},
        {"<img src=x>", "<img src=x>"},
        {"void ", ""},
        {"f<<<", "f<…>"},
        {"void g(", "g"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_STR_EQ(short_name(names[i][0]), names[i][1][0] ? names[i][1] : names[i][0]);
    if (sv_demangle_is_possible())
        CHECK_STR_EQ(short_name("_ZN7cutlass6KernelI4gemmILi128EEEEvT_"), "cutlass::Kernel<…>");
}

TEST(ops_paths_name_operator_module_and_phase)
{
    static const struct {
        const char *path, *op, *module;
        enum sv_ops_phase phase;
    } paths[] = {
        {"jit(step)/jit(main)/transpose(jvp(MLP))/Dense_0/dot_general[a=(1, 2) b=c/d]",
         "dot_general", "MLP/Dense_0", SV_OPS_BACKWARD},
        {"jit(step)/jit(main)/jvp(MLP)/add", "add", "MLP", SV_OPS_FORWARD},
        {"model/dense/MatMul:MatMul", "MatMul", "model/dense", SV_OPS_OTHER},
        {"gradient_tape/model/dense/MatMul:MatMul", "MatMul", "model/dense", SV_OPS_BACKWARD},
        {"jit(f)/adam/mul", "mul", "adam", SV_OPS_OPTIMIZER},
        {"fusion.3", "fusion.3", "", SV_OPS_OTHER},
        {"jit(f)/jit(main)", "jit(f)/jit(main)", "", SV_OPS_OTHER},
        {"///", "///", "", SV_OPS_OTHER},
        {"a/(((", "(((", "a", SV_OPS_OTHER},
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct sv_ops_path p;
        sv_ops_path_read(&p, (struct sv_text){paths[i].path, (uint32_t)strlen(paths[i].path)});
        CHECK(p.op.len == strlen(paths[i].op) && memcmp(p.op.bytes, paths[i].op, p.op.len) == 0);
        CHECK_STR_EQ(p.module, paths[i].module);
        CHECK_INT_EQ(p.phase, paths[i].phase);
    }
}
