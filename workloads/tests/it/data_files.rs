//! Data sets on the disc: each kind is read from a tiny file, and each fault of a file is reported.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use haversack_workloads::data::{Content, DataSet, LoadOptions, SampleForm, load};

const PIXELS: usize = 3072;

fn options() -> LoadOptions {
    LoadOptions { validation_share: Some(0.5), seed: 1, length: 4, vocabulary: 5 }
}

fn read(folder: &Path) -> DataSet {
    load(folder.to_str().unwrap(), &options()).unwrap()
}

fn refusal(name: &str) -> String {
    load(name, &options()).unwrap_err().to_string()
}

/// Records of CIFAR-10 whose pixels are the label times ten.
fn cifar(labels: &[u8]) -> Vec<u8> {
    labels.iter().flat_map(|&label| std::iter::once(label).chain(std::iter::repeat_n(label * 10, PIXELS))).collect()
}

/// An IDX file of bytes.
fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    shape.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// Four images of 1 × 2 pixels to train on and one to test on.
fn write_idx(folder: &Path) {
    fs::write(folder.join("train-images-idx3-ubyte"), idx(&[4, 1, 2], &[0, 1, 2, 3, 4, 5, 6, 7])).unwrap();
    fs::write(folder.join("train-labels-idx1-ubyte"), idx(&[4], &[0, 0, 1, 1])).unwrap();
    fs::write(folder.join("t10k-images-idx3-ubyte"), idx(&[1, 1, 2], &[8, 9])).unwrap();
    fs::write(folder.join("t10k-labels-idx1-ubyte"), idx(&[1], &[1])).unwrap();
}

#[test]
fn cifar_10_is_read_and_a_validation_part_cut_from_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data_batch_1.bin"), cifar(&[0, 1])).unwrap();
    fs::write(folder.path().join("data_batch_2.bin"), cifar(&[0, 1])).unwrap();
    fs::write(folder.path().join("test_batch.bin"), cifar(&[9])).unwrap();
    let set = read(folder.path());
    // Half of the two images of each class.
    assert_eq!((set.train.labels.iter().sum::<u16>(), set.validation.labels.iter().sum::<u16>()), (1, 1));
    assert_eq!((set.train.len(), set.validation.len()), (2, 2));
    assert_eq!((set.number_of_classes, set.test.labels.clone()), (10, vec![9]));
    assert_eq!(set.test.content, Content::Images(vec![90; PIXELS]));
    // Half of the train part's bytes are 0 and half 10: mean 5, deviation 5.
    let SampleForm::Image(form) = &set.form else { panic!("{:?}", set.form) };
    assert_eq!((form.means[0], form.deviations[2]), (5.0, 5.0));
}

#[test]
fn cifar_100_takes_the_fine_labels() {
    let folder = tempfile::tempdir().unwrap();
    let record = |fine: u8| [vec![3, fine], vec![0; PIXELS]].concat();
    fs::write(folder.path().join("train.bin"), [record(99), record(99)].concat()).unwrap();
    fs::write(folder.path().join("test.bin"), record(42)).unwrap();
    let set = read(folder.path());
    assert_eq!((set.number_of_classes, set.train.labels[0], set.test.labels[0]), (100, 99, 42));
}

#[test]
fn faults_of_cifar_name_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let train = folder.path().join("data_batch_1.bin");
    let path = folder.path().to_str().unwrap();
    fs::write(folder.path().join("test_batch.bin"), cifar(&[9])).unwrap();
    fs::write(&train, &cifar(&[1, 2])[..4000]).unwrap();
    // The second record begins at byte 3073; the file contains 4000 − 3073 = 927 bytes of it.
    let error = refusal(path);
    assert!(
        error.contains("data_batch_1.bin, byte 3073: found a record of 927 bytes; expected whole records"),
        "{error}"
    );
    fs::write(&train, cifar(&[1, 10])).unwrap();
    let error = refusal(path);
    assert!(error.contains("byte 3073: found the label 10; expected a label from 0 to 9"), "{error}");
    fs::write(&train, "").unwrap();
    assert!(refusal(path).contains("byte 0: found an empty file"));
    fs::write(&train, cifar(&[1])).unwrap();
    fs::remove_file(folder.path().join("test_batch.bin")).unwrap();
    assert!(refusal(&format!("cifar10:{path}")).contains("test_batch.bin"));
}

#[test]
fn a_batch_of_cifar_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data_batch_1.bin", "data_batch_3.bin", "test_batch.bin"] {
        fs::write(folder.path().join(name), cifar(&[1, 2])).unwrap();
    }
    assert!(refusal(folder.path().to_str().unwrap()).contains("data_batch_2.bin"));
}

#[test]
fn idx_is_read_plain_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    write_idx(folder.path());
    let plain = read(folder.path());
    assert_eq!((plain.number_of_classes, plain.train.len(), plain.validation.len()), (2, 2, 2));
    assert_eq!((plain.test.content.clone(), plain.form.elements()), (Content::Images(vec![8, 9]), 2));
    let name = folder.path().join("train-images-idx3-ubyte");
    let mut encoder = GzEncoder::new(fs::File::create(name.with_extension("gz")).unwrap(), Compression::fast());
    encoder.write_all(&fs::read(&name).unwrap()).unwrap();
    encoder.finish().unwrap();
    fs::remove_file(name).unwrap();
    assert_eq!(read(folder.path()).digest(), plain.digest());
}

#[test]
fn faults_of_idx_name_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("idx:{}", folder.path().display());
    let with = |name: &str, bytes: &[u8]| {
        write_idx(folder.path());
        fs::write(folder.path().join(name), bytes).unwrap();
        refusal(&path)
    };
    // A head of 4 + 3 × 4 bytes, and 4 × 1 × 2 values: 24 bytes.
    let error = with("train-images-idx3-ubyte", &idx(&[4, 1, 2], &[0, 1]));
    assert!(error.contains("byte 18: found the end of the file; expected 24 bytes"), "{error}");
    let error = with("train-images-idx3-ubyte", &idx(&[0, 1, 2], &[]));
    assert!(error.contains("byte 4: found a dimension of 0"), "{error}");
    let error = with("train-labels-idx1-ubyte", &idx(&[4, 1], &[0, 0, 1, 1]));
    assert!(error.contains("byte 0: found [0, 0, 8, 2]; expected [0, 0, 8, 1]"), "{error}");
    let error = with("train-labels-idx1-ubyte", &idx(&[3], &[0, 0, 1]));
    assert!(error.contains("byte 4: found 3 labels; expected 4, as many as"), "{error}");
    let error = with("t10k-labels-idx1-ubyte", &idx(&[1], &[7]));
    assert!(error.contains("found the label 7 of a test image; expected a label from 0 to 1"), "{error}");
    let error = with("t10k-images-idx3-ubyte", &idx(&[1, 2, 1], &[8, 9]));
    assert!(error.contains("found images of 2 × 1 pixels to test on; expected 1 × 2"), "{error}");
    let huge = idx(&[u32::MAX, u32::MAX, u32::MAX], &[]);
    assert!(with("train-images-idx3-ubyte", &huge).contains("expected fewer values"));
    write_idx(folder.path());
    fs::remove_file(folder.path().join("train-labels-idx1-ubyte")).unwrap();
    assert!(refusal(&path).contains("found no file of train's labels"));
}

#[test]
fn texts_become_the_tokens_of_their_most_frequent_words() {
    let folder = tempfile::tempdir().unwrap();
    let train = "label,text\ngood,\"Fine, fine: THE film\"\nbad,the worst\nbad,the film dragged on and on\ngood,fine\n";
    fs::write(folder.path().join("train.csv"), train).unwrap();
    fs::write(folder.path().join("test.tsv"), "text\tlabel\nA fine the film, the end\tgood\n").unwrap();
    let set = read(folder.path());
    // Fine and the three times, film and on twice: of the five tokens two are reserved, three go to fine, the (2, 3)
    // and film (4), which comes before on. The text is cut after four words, of which the first is unknown (1).
    assert_eq!(set.test.content, Content::Tokens(vec![1, 2, 3, 4]));
    // Labels in the order of the alphabet: bad 0, good 1.
    assert_eq!((set.test.labels.clone(), set.number_of_classes), (vec![1], 2));
    assert_eq!((set.train.len(), set.validation.len()), (2, 2));
}

#[test]
fn a_table_in_one_file_is_cut_into_three_parts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    let rows: String = (0..16).map(|row| format!("text {row},{}\n", row % 2)).collect();
    fs::write(&file, format!("text,label\n{rows}")).unwrap();
    let set = read(&file);
    // Half of 16 to test on, half of the 8 that stay to choose on.
    assert_eq!((set.train.len(), set.validation.len(), set.test.len()), (4, 4, 8));
}

#[test]
fn faults_of_tables_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let train = folder.path().join("train.csv");
    let path = folder.path().to_str().unwrap();
    let with = |text: &[u8]| {
        fs::write(&train, text).unwrap();
        refusal(path)
    };
    let error = with(b"words,label\na,b\n");
    assert!(error.contains("line 1: found the columns words, label; expected the columns text and label"), "{error}");
    assert!(with(b"text,label\n").contains("line 2: found the end of the file"));
    assert!(with(b"text,label\na,x\nb\n").contains("line 3: found 1 fields; expected 2"));
    assert!(with(b"text,label\na,x\nb,\n").contains("line 3: found no label"));
    assert!(with(b"text,label\na,x\n\xff,y\n").contains("line 3: found bytes that are not text; expected UTF-8"));
    assert!(with(b"text,label\na,x\n").contains("found 1 different labels; expected at least two"));
    fs::write(folder.path().join("test.csv"), "text,label\na,z\n").unwrap();
    let error = with(b"text,label\na,x\nb,y\n");
    assert!(error.contains("test.csv, line 2: found the label 'z'; expected one of the train part: x, y"), "{error}");
}

#[test]
fn a_name_that_is_nothing_says_what_is_expected() {
    let error = refusal("glyps");
    assert!(error.contains("unknown data set 'glyps'; did you mean 'glyphs'?"), "{error}");
    assert!(refusal("no/such").contains("cannot read no/such"));
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path().to_str().unwrap()).contains("none of their files among its 0; expected a folder"));
    let file = folder.path().join("data.bin");
    fs::write(&file, "").unwrap();
    assert!(refusal(file.to_str().unwrap()).contains("neither .csv nor .tsv"));
}
