#!/bin/sh
# Trains again what figures of accuracy are drawn from, and puts it into this folder. From the root of the project:
#
#     sh experiments/measured/train.sh                           # everything, with every seed
#     sh experiments/measured/train.sh fedhybrid/table3          # what one artefact is drawn from
#     FLAGS=--learn sh experiments/measured/train.sh daf/table1  # with one seed
#
# A run that was stopped goes on where it was. HAVERSACK is the program, OUT the folder of results.
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
