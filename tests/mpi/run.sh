# tests/mpi/run.sh - how ranks are started on this machine: to be sourced, with the program `collectives` set.
#
# The program prints which MPI it was linked with. Ranks may run as root, may be more than the processors, and are bound to none.
case $("$collectives" which) in
    *Open\ MPI*)
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        starter=mpirun.openmpi flags='--oversubscribe --bind-to none' ;;
    *) starter=mpirun.mpich flags='' ;;
esac
# The address sanitizer does not report blocks that MPI never frees.
export LSAN_OPTIONS="suppressions=$(cd "$(dirname "$0")" && pwd)/leaks.supp:print_suppressions=0"
command -v $starter > /dev/null || starter=mpirun

# ranks N PROGRAM ARGUMENTS...
ranks() {
    n=$1
    shift
    timeout -k 10 300 "$starter" $flags -n "$n" "$@"
}
