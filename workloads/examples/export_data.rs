//! Writes an embedded data set for other frameworks: images as CIFAR-10's binaries (a byte of the label, then the
//! planes), tokens as tables of `label,text`.
//!
//! ```sh
//! cargo run -q --release -p haversack-workloads --example export_data -- glyphs FOLDER
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use haversack_workloads::data::{Content, LoadOptions, Part, load};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = arguments.as_slice() else { return Err("usage: export_data glyphs|phrases FOLDER".into()) };
    let set = load(name, &LoadOptions::default())?;
    std::fs::create_dir_all(folder)?;
    for (part, file) in [(Part::Train, "train"), (Part::Validation, "validation"), (Part::Test, "test")] {
        let (samples, width) = (set.part(part), set.form.elements());
        match &samples.content {
            Content::Images(bytes) => {
                let labelled = bytes.chunks_exact(width).zip(&samples.labels);
                let records: Vec<u8> = labelled.flat_map(|(image, &label)| [&[label as u8], image].concat()).collect();
                std::fs::write(Path::new(folder).join(format!("{file}.bin")), records)?;
            }
            Content::Tokens(ids) => {
                let mut table = "label,text\n".to_owned();
                for (ids, label) in ids.chunks_exact(width).zip(&samples.labels) {
                    let text: Vec<String> = ids.iter().map(u16::to_string).collect();
                    writeln!(table, "{label},{}", text.join(" "))?;
                }
                std::fs::write(Path::new(folder).join(format!("{file}.csv")), table)?;
            }
        }
    }
    println!("{folder}: {}", set.description);
    Ok(())
}
