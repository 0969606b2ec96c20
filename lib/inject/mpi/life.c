/* Beginning and end of MPI and of communicators. */
#include "mpi_inject.h"

#define PART_MAKER(name, params, args)      \
    int mpi_on_##name params                \
    {                                       \
        int code;                           \
        if (mpi_depth)                      \
            return mpi->calls.name args;    \
        STAVE_BEGIN(CAT_MPI, "MPI_" #name); \
        CALL_MPI(code, name, args);         \
        END_CALL(CAT_MPI, code);            \
        if (code == MPI_SUCCESS)            \
            mpi_comm_made(*made);           \
        return code;                        \
    }
MPI_PART_MAKERS(PART_MAKER)

int mpi_on_Init(int *argc, char ***argv)
{
    int code;
    STAVE_BEGIN(CAT_MPI, "MPI_Init");
    CALL_MPI(code, Init, (argc, argv));
    END_CALL(CAT_MPI, code);
    if (code == MPI_SUCCESS)
        mpi_comm_made(mpi->world);
    return code;
}

int mpi_on_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code;
    STAVE_BEGIN(CAT_MPI, "MPI_Init_thread");
    CALL_MPI(code, Init_thread, (argc, argv, required, provided));
    END_CALL(CAT_MPI, code);
    if (code == MPI_SUCCESS)
        mpi_comm_made(mpi->world);
    return code;
}

int mpi_on_Finalize(void)
{
    int code;
    STAVE_BEGIN(CAT_MPI, "MPI_Finalize");
    CALL_MPI(code, Finalize, ());
    END_CALL(CAT_MPI, code);
    return code;
}

int mpi_on_Abort(MPI_Comm comm, int code)
{
    STAVE_INSTANT(CAT_MPI, "MPI_Abort", "code", code);
    return mpi->calls.Abort(comm, code);
}

int mpi_on_Comm_free(MPI_Comm *comm)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Comm_free(comm);
    mpi_comm_gone(*comm); /* before: another thread may get the handle at once */
    STAVE_BEGIN(CAT_MPI, "MPI_Comm_free");
    CALL_MPI(code, Comm_free, (comm));
    END_CALL(CAT_MPI, code);
    return code;
}

int mpi_on_Comm_disconnect(MPI_Comm *comm)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Comm_disconnect(comm);
    mpi_comm_gone(*comm); /* before: another thread may get the handle at once */
    STAVE_BEGIN(CAT_MPI, "MPI_Comm_disconnect");
    CALL_MPI(code, Comm_disconnect, (comm));
    END_CALL(CAT_MPI, code);
    return code;
}
