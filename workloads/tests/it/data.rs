//! Data sets: their orders, parts and mini-batches.

use haversack_workloads::data::{
    Augmentation, Content, DataSet, ImageForm, Inputs, Part, SampleForm, Samples, epoch_order, glyphs, phrases,
    split_off, tails,
};

/// Two images of one channel, 2 × 3, and nothing else.
fn two_images() -> DataSet {
    let nothing = Samples { content: Content::Images(Vec::new()), labels: Vec::new() };
    DataSet {
        id: "two".to_owned(),
        description: "two images".to_owned(),
        number_of_classes: 2,
        form: SampleForm::Image(ImageForm {
            channels: 1,
            height: 2,
            width: 3,
            means: vec![2.0],
            deviations: vec![0.5],
        }),
        train: Samples { content: Content::Images((0..12).collect()), labels: vec![1, 0] },
        validation: nothing.clone(),
        test: nothing,
    }
}

#[test]
fn an_epoch_visits_every_sample_once_in_an_order_of_its_own() {
    let order = epoch_order(100, 7, 0);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    assert_eq!(order, epoch_order(100, 7, 0));
    assert_ne!(order, epoch_order(100, 7, 1));
    assert_ne!(order, epoch_order(100, 8, 0));
}

#[test]
fn validation_takes_the_same_share_of_every_class() {
    // 40 of class 0 and 20 of class 1: a tenth is 4 and 2.
    let labels: Vec<u16> = (0..60).map(|sample| u16::from(sample % 3 == 0)).collect();
    let (kept, aside) = split_off(&labels, 0.1, 3);
    let of_class_1 = |samples: &[usize]| samples.iter().filter(|&&sample| labels[sample] == 1).count();
    assert_eq!((aside.len(), of_class_1(&aside)), (6, 2));
    assert_eq!((kept.len(), of_class_1(&kept)), (54, 18));
    assert!(kept.is_sorted() && aside.is_sorted());
    assert_ne!(split_off(&labels, 0.1, 4).1, aside);
}

#[test]
fn a_mini_batch_is_normalised_and_in_the_order_asked_for() {
    let batch = two_images().mini_batch(Part::Train, &[1, 0], None);
    // The second image contains 6 to 11: (6 − 2) / 0.5 = 8, and so on by 2; the first 0 to 5, from −4.
    let expected: Vec<f32> = [8, 10, 12, 14, 16, 18, -4, -2, 0, 2, 4, 6].map(|value: i8| f32::from(value)).to_vec();
    assert_eq!(batch.inputs, Inputs::Images(expected));
    assert_eq!(batch.labels, [0, 1]);
}

#[test]
fn augmentation_moves_an_image_the_same_way_in_every_mini_batch() {
    let set = two_images();
    let epoch = |epoch| Augmentation { shift: 1, mirror: true, seed: 5, epoch };
    let image = |indices: &[usize], epoch| match set.mini_batch(Part::Train, indices, Some(&epoch)).inputs {
        Inputs::Images(values) => values[values.len() - 6..].to_vec(),
        Inputs::Tokens(_) => Vec::new(),
    };
    assert_eq!(image(&[1], epoch(0)), image(&[0, 1], epoch(0)));
    let seen: Vec<Vec<f32>> = (0..40).map(|number| image(&[1], epoch(number))).collect();
    // Shifted by one to the right and down, the pixel at the top left, 6, fills the first row but its last pixel, which
    // is 7; the second row repeats it.
    let down_right = [8, 8, 10, 8, 8, 10].map(|value: i8| f32::from(value)).to_vec();
    assert!(seen.contains(&down_right), "{seen:?}");
    // Only mirrored: 8 7 6 and 11 10 9.
    let mirrored = [12, 10, 8, 18, 16, 14].map(|value: i8| f32::from(value)).to_vec();
    assert!(seen.contains(&mirrored), "{seen:?}");
}

#[test]
fn phrases_have_the_shape_that_their_constants_say() {
    let set = phrases::data_set();
    assert_eq!(set.form, SampleForm::Tokens { length: phrases::LENGTH, vocabulary: phrases::VOCABULARY });
    for part in [&set.train, &set.validation, &set.test] {
        let Content::Tokens(ids) = &part.content else { panic!("{:?}", part.content) };
        assert_eq!(ids.len(), part.len() * phrases::LENGTH);
        assert!(ids.iter().all(|&id| usize::from(id) < phrases::VOCABULARY));
        let mut classes = [0; phrases::CLASSES];
        part.labels.iter().for_each(|&label| classes[usize::from(label)] += 1);
        // Each class is a quarter, give or take four standard deviations: √(n ⋅ ¼ ⋅ ¾) is 14 of 1000.
        let quarter = part.len() as f64 / 4.0;
        assert!(classes.iter().all(|&number| (f64::from(number) - quarter).abs() < 4.0 * (quarter * 0.75).sqrt()));
    }
}

#[test]
fn the_sets_made_by_code_are_the_same_bytes_on_every_machine() {
    // Digests of a first run: a change of a set changes the data behind every measured accuracy.
    assert_eq!(format!("{:016x}", phrases::data_set().digest()), "2f82a0535fad3ee6");
    assert_eq!(format!("{:016x}", glyphs::data_set().digest()), "a714b94602be09f4");
    assert_eq!(format!("{:016x}", tails::data_set("tails-4").unwrap().digest()), "7f4f74e19c58e947");
}

#[test]
fn glyphs_cannot_be_told_apart_by_their_colours() {
    let set = glyphs::data_set();
    let Content::Images(bytes) = &set.train.content else { panic!("{:?}", set.form) };
    let size = set.form.elements();
    assert_eq!((bytes.len(), size), (set.train.len() * size, glyphs::CHANNELS * glyphs::SIDE * glyphs::SIDE));
    let mut sums = vec![(0_u64, 0_u64); glyphs::CLASSES];
    for (image, &label) in bytes.chunks_exact(size).zip(&set.train.labels) {
        let (sum, number) = &mut sums[usize::from(label)];
        *sum += image.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        *number += 1;
    }
    // Every class has about a thousand images, whose mean brightness is within three of the middle: colours of ground
    // and pen are drawn from 30 to 225, so that the mean of an image strays by some 35 from 127.5, and of 1000 by 1.1.
    for (sum, number) in sums {
        assert!((880..1120).contains(&number), "{number}");
        let mean = sum as f64 / (number * size as u64) as f64;
        assert!((mean - 127.5).abs() < 4.5, "{mean}");
    }
}
