//! Fronts, tables, frames and files.

use std::fs;

use haversack_reports::figure::number;
use haversack_reports::files::{remove_stale_parts, write_atomically};
use haversack_reports::frame::{FrameError, ParquetFile, read_parquet, write_parquet};
use haversack_reports::pareto::{BOTH_MINIMISED, Sense, Senses, front};
use haversack_reports::table::{Cell, Table, escaped, shortest};
use haversack_reports::text_table::{Column, TextTable};
use polars::df;
use proptest::prelude::*;

/// The definition, in O(n²): not dominated, and the first of equal points.
fn slow_front(points: &[(f64, f64)], senses: Senses) -> Vec<usize> {
    let no_worse = |a: f64, b: f64, sense| if sense == Sense::Minimise { a <= b } else { a >= b };
    let weakly = |a: (f64, f64), b: (f64, f64)| no_worse(a.0, b.0, senses[0]) && no_worse(a.1, b.1, senses[1]);
    let kept = |i: &usize| {
        (0..points.len()).all(|j| {
            let (a, b) = (points[j], points[*i]);
            let (dominates, earlier_twin) = (weakly(a, b) && a != b, a == b && j < *i);
            !dominates && !earlier_twin
        })
    };
    (0..points.len()).filter(kept).collect()
}

fn any_senses() -> impl Strategy<Value = Senses> {
    let sense = || prop_oneof![Just(Sense::Minimise), Just(Sense::Maximise)];
    (sense(), sense()).prop_map(|(a, b)| [a, b])
}

/// Few distinct coordinates, so that ties are common.
fn any_points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0..12_i32, 0..12_i32).prop_map(|(x, y)| (f64::from(x), f64::from(y))), 0..40)
}

proptest! {
    #[test]
    fn the_front_is_what_its_definition_says(points in any_points(), senses in any_senses()) {
        let mut found = front(&points, senses);
        let first: Vec<f64> = found.iter().map(|i| points[*i].0).collect();
        let sorted = first.windows(2).all(|w| if senses[0] == Sense::Minimise { w[0] < w[1] } else { w[0] > w[1] });
        prop_assert!(sorted);
        found.sort_unstable();
        prop_assert_eq!(found, slow_front(&points, senses));
    }

    #[test]
    fn numbers_read_back_to_the_same_bits(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(shortest(value).parse::<f64>().unwrap().to_bits(), bits);
    }
}

#[test]
fn points_that_are_not_finite_take_no_part_in_a_front() {
    let points = [(f64::NAN, 0.0), (1.0, 1.0), (0.0, f64::INFINITY), (f64::NEG_INFINITY, 5.0)];
    assert_eq!(front(&points, BOTH_MINIMISED), [1]);
    assert!(front(&[], BOTH_MINIMISED).is_empty());
}

fn table() -> Table {
    let mut table = Table::new(["id", "value", "note"]);
    table.push(["a".into(), 0.1.into(), "plain".into()]).unwrap();
    table.push(["b, c".into(), Cell::Empty, "say \"no\"\nor <yes> & go".into()]).unwrap();
    table.push(["d".into(), 1e300.into(), Cell::Flag(true)]).unwrap();
    table
}

#[test]
fn csv_quotes_as_rfc_4180_and_ends_lines_with_lf() {
    let expected = "id,value,note\na,0.1,plain\n\"b, c\",,\"say \"\"no\"\"\nor <yes> & go\"\nd,1e300,true\n";
    assert_eq!(table().to_csv(), expected);
}

#[test]
fn what_goes_into_a_page_is_escaped_and_shown_in_three_digits() {
    assert_eq!(escaped("say \"no\"\nor <yes> & 'go'"), "say &quot;no&quot;\nor &lt;yes&gt; &amp; &#39;go&#39;");
    // The CSV keeps the exact value.
    assert_eq!((number(1e300), shortest(1e300)), ("10³⁰⁰".to_owned(), "1e300".to_owned()));
}

#[test]
fn a_row_of_another_width_is_refused() {
    let error = table().push([Cell::Empty]).unwrap_err();
    assert_eq!(error.to_string(), "row 3 has 1 cells for 3 columns");
}

#[test]
fn text_tables_stand_in_columns() {
    let columns = [Column::left(4).fitted(), Column::right(6).after(2), Column::left(3).after(1)];
    let mut table = TextTable::new(columns).indented(1);
    table
        .row(["name", "value", "unit"])
        .row(["größer", "1.5", "s"])
        .row(["a", "1234567", "ms", "  a remark"])
        .row([""]);
    // The first column is as wide as its longest cell, six letters; the value of seven digits shifts only its own row,
    // and nothing follows the last word of a row.
    let expected = " name     value unit\n größer     1.5 s\n a       1234567 ms   a remark\n\n";
    assert_eq!(table.to_string(), expected);
}

#[test]
fn a_frame_survives_parquet_and_gives_the_same_bytes() {
    let frame = df!("policy" => ["sage", "dgc"], "time_s" => [1.25, 0.5], "least" => [Some(3_i64), None]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.parquet");
    write_parquet(&path, &frame).unwrap();
    assert!(read_parquet(&path).unwrap().equals_missing(&frame));
    let bytes = fs::read(&path).unwrap();
    write_parquet(&path, &frame).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // An unfinished file leaves nothing behind, and the old file stays.
    let mut file = ParquetFile::create(&path, frame.schema()).unwrap();
    file.write(&frame).unwrap();
    drop(file);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn reading_what_is_not_parquet_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.parquet");
    assert!(matches!(read_parquet(&path), Err(FrameError::File(_))));
    fs::write(&path, "not parquet").unwrap();
    let error = read_parquet(&path).unwrap_err();
    assert!(matches!(error, FrameError::Decode { .. }) && error.to_string().contains("results.parquet"), "{error}");
}

#[test]
fn writing_replaces_the_whole_file_and_leaves_no_partial() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.csv");
    write_atomically(&path, b"a much longer first version").unwrap();
    write_atomically(&path, b"second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_write_leaves_no_partial_and_names_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("taken");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("inside"), "kept").unwrap();
    let error = write_atomically(&target, b"bytes").unwrap_err();
    assert_eq!(error.path, target);
    assert!(error.to_string().starts_with("cannot write ") && error.to_string().contains("taken"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(write_atomically(&folder.path().join("absent/file"), b"x").is_err());
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_left_goes_and_what_another_writes_stays() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".haversack-abc.part"), "half").unwrap();
    fs::write(folder.path().join(".mine.part"), "kept").unwrap();
    let frame = df!("a" => [1]).unwrap();
    let file = ParquetFile::create(&folder.path().join("t.parquet"), frame.schema()).unwrap();
    remove_stale_parts(folder.path());
    let count = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(count(), 2);
    drop(file);
    assert_eq!(count(), 1);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("real", &link).unwrap();
    assert!(write_atomically(&link, b"x").unwrap_err().to_string().contains("leads nowhere"));
    fs::write(folder.path().join("real"), "old").unwrap();
    write_atomically(&link, b"new").unwrap();
    assert!(link.is_symlink() && fs::read(folder.path().join("real")).unwrap() == b"new");
}
