#!/bin/sh
# Runs a sweep, federations or a reproduction by shards as a Slurm array, and merges them last.
#
#     sh examples/engines/on_slurm.sh 4 whole sweep examples/sweep.toml
#     sh examples/engines/on_slurm.sh 2 whole federate examples/selectors.toml
#     sh examples/engines/on_slurm.sh 8 whole reproduce --full
#
# The arguments are the number of shards, the folder of the whole, and the command. SBATCH_ACCOUNT, SBATCH_PARTITION and
# SBATCH_TIMELIMIT are read by sbatch itself; HAVERSACK names the program where it is not on the PATH. All nodes must see the
# folder in which this is called.
#
# Each task of the array is `haversack COMMAND --shard I/N --out WHOLE.shards/I --resume`. One that is killed, by a signal or
# with its node, is queued again, three times at most, and continues where it stopped (Slurm waits two minutes before it
# restarts a task); wrong input (exit code 2) is not queued again. The merge waits for all of them: its folder has the same
# bytes as one process would have written. Their output is in WHOLE.shards/I.log and WHOLE.shards/merge.log. To continue after
# an interruption, run the same command again.
set -eu

haversack=${HAVERSACK:-haversack}

# Slurm handles a node that dies (--requeue); the output then continues in the same file.
submit() {
    sbatch --parsable --requeue --open-mode=append --chdir="$PWD" --ntasks=1 "$@"
}

if [ -z "${SLURM_JOB_ID:-}" ]; then
    shards=$1 whole=$2
    mkdir -p "$whole.shards"
    self=$(realpath "$0")
    array=$(submit --job-name=haversack --array="1-$shards" --output="$whole.shards/%a.log" "$self" "$@")
    merge=$(submit --job-name=haversack-merge --output="$whole.shards/merge.log" \
        --dependency="afterok:$array" --kill-on-invalid-dep=yes "$self" "$@")
    echo "array $array of $shards shards, merge $merge: squeue -j $array,$merge"
    exit
fi

shards=$1 whole=$2
shift 2
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
    set --
    part=0
    while [ $part -lt "$shards" ]; do
        part=$((part + 1))
        set -- "$@" "$whole.shards/$part"
    done
    exec "$haversack" merge "$@" --out "$whole"
fi

part=$SLURM_ARRAY_TASK_ID
code=0
"$haversack" "$@" --shard "$part/$shards" --out "$whole.shards/$part" --resume --jobs "${SLURM_CPUS_PER_TASK:-1}" || code=$?
# Above 128 it was a signal that ended it; 130 is Ctrl-C, which was intended.
if [ $code -gt 128 ] && [ $code -ne 130 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then
    echo "shard $part was killed (exit code $code): it is queued again"
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$part"
    # Slurm ends this task now, and restarts it.
    sleep 60
fi
exit $code
