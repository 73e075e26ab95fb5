#!/bin/sh
# Repeats the trainings behind the figures of accuracy, and puts the results into this folder. From the root of the project:
#
#     sh experiments/measured/train.sh                           # everything, with every seed
#     sh experiments/measured/train.sh fedhybrid/table3          # the trainings of one artefact
#     FLAGS=--learn sh experiments/measured/train.sh daf/table1  # with one seed
#
# A run that was stopped continues where it stopped. HAVERSACK is the program, OUT the folder of results.
set -eu
out=${OUT:-learned}
if [ $# -eq 0 ]; then
    set -- daf/table1 daf/figure8 daf/figure9 daf/figure10 daf/figure11 mandheling/table8 mandheling/figure8b \
        fedhybrid/table3 fedhybrid/table4 fedhybrid/figure1 fedhybrid/figure3 fedhybrid/figure17 fedhybrid/readings comparison/federation
fi
# shellcheck disable=SC2086
${HAVERSACK:-cargo run --release --quiet --} reproduce "$@" ${FLAGS:---learn --full} --resume --out "$out"
for file in "$out"/*/*.toml; do
    cp "$file" "experiments/measured/$(basename "$(dirname "$file")")-$(basename "$file")"
done
