//! `base = "ID|FILE"`: a calibration that overrides a few numbers of another.

use std::fs;
use std::path::PathBuf;

use haversack_devices::units::{Bytes, Hertz, Nanos};
use haversack_devices::{Device, Kind, load, load_stack, load_system, registry};

/// A folder of its own that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("haversack-base-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file; its path as a user would name it.
    fn put(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MINE: &str = r#"base = "galaxy-s22"
name = "Mine"
ram = { value = 12, unit = "GiB", kind = "datasheet", source = "my box" }

[gpu]
launch = { value = 40 }

[[cpu]]
class = "big"
frequency = { value = 2.8, unit = "GHz", kind = "measured", source = "my phone" }
"#;

#[test]
fn what_a_file_does_not_say_its_base_does() {
    let folder = Folder::new("says");
    let path = folder.put("mine.toml", MINE);
    let (mine, base) = (load(&path).unwrap(), load("galaxy-s22").unwrap());
    assert_eq!((mine.id.as_str(), mine.constants.name.as_str()), ("mine", "Mine"));
    assert_eq!(mine.constants.soc, base.constants.soc);
    assert_eq!(mine.ram(), Bytes(12 << 30));
    // A bare value keeps its unit and counts as estimated: the base's source does not apply to it.
    let launch = &mine.constants.gpu.as_ref().unwrap().launch;
    assert_eq!((launch.value, launch.kind, &launch.note), (Nanos(40_000), Kind::Estimated, &None));
    assert_eq!(launch.source, path);
    // It overrides the cluster of its class; the rest of this cluster and the other clusters are unchanged.
    let (cpu, base_cpu) = (&mine.constants.cpu, &base.constants.cpu);
    assert_eq!(cpu.len(), base_cpu.len());
    assert_eq!((cpu[0].frequency.value, cpu[0].core.as_str()), (Hertz(2.8e9), "Cortex-X2"));
    assert_eq!((cpu[0].l2.value, cpu[1].frequency.value), (base_cpu[0].l2.value, base_cpu[1].frequency.value));
    // A listing gives the file of each constant.
    let of = |name: &str| mine.entries().into_iter().find(|entry| entry.name == name).unwrap().file;
    assert_eq!((of("ram"), of("gpu.launch"), of("cpu.0.frequency")), (path.clone(), path.clone(), path));
    assert_eq!(of("gpu.round_trip"), base.file);
    assert_eq!(of("cpu.0.l2"), "devices/calibrations/cores/cortex-x2.toml");
    assert_eq!(mine.bases, [base.file]);
}

#[test]
fn a_base_has_a_base_and_both_are_in_the_digest() {
    let folder = Folder::new("chain");
    folder.put("parts/first.toml", MINE);
    let second =
        "base = \"parts/first.toml\"\nbattery = { value = 20, unit = \"Wh\", kind = \"datasheet\", source = \"s\" }\n";
    let path = folder.put("second.toml", second);
    let read = load(&path).unwrap();
    assert_eq!((read.ram(), read.bases.len()), (Bytes(12 << 30), 2));
    // The digest covers the three texts in order, and the parts that the last one names.
    let built_in = [
        include_str!("../../calibrations/galaxy-s22.toml"),
        include_str!("../../calibrations/cores/cortex-x2.toml"),
        include_str!("../../calibrations/cores/cortex-a710.toml"),
        include_str!("../../calibrations/cores/cortex-a510.toml"),
        include_str!("../../calibrations/flash/ufs31.toml"),
    ];
    assert_eq!(read.digest, registry::digest(&format!("{second}{MINE}{}", built_in.concat())));
    folder.put("parts/first.toml", &MINE.replace("12", "8"));
    let changed = load(&path).unwrap();
    assert!(changed.digest != read.digest && changed.ram() == Bytes(8 << 30));
}

#[test]
fn two_clusters_of_a_class_are_told_apart_by_their_core_and_a_list_is_dropped_by_an_empty_one() {
    // The Snapdragon 8 Gen 2 has two clusters of class middle.
    let base = load("galaxy-s23-ultra").unwrap();
    let core =
        base.constants.cpu.iter().filter(|cluster| cluster.class.word() == "middle").nth(1).unwrap().core.clone();
    let text =
        format!("base = \"galaxy-s23-ultra\"\n[[cpu]]\ncore = \"{core}\"\npower = {{ value = 1, unit = \"mW\" }}\n");
    let read = Device::parse("x", "x.toml", &text).unwrap();
    let powers: Vec<f64> = read.constants.cpu.iter().map(|cluster| cluster.power.value.0).collect();
    assert_eq!((powers.len(), powers.iter().filter(|power| **power == 1e-3).count()), (base.constants.cpu.len(), 1));
    let read = Device::parse("x", "x.toml", "base = \"pixel-6\"\ndvfs = []\n").unwrap();
    assert!(read.constants.dvfs.is_empty() && !load("pixel-6").unwrap().constants.dvfs.is_empty());
}

#[test]
fn a_stack_and_a_system_have_bases_too() {
    let folder = Folder::new("others");
    let stack = folder.put("my-stack.toml", "base = \"mnn\"\nname = \"Mine\"\ncpu.operator_overhead.value = 7\n");
    let overhead = load_stack(&stack).unwrap().constants.cpu.unwrap().operator_overhead;
    assert_eq!(overhead.value, Nanos(7_000));
    // An empty array removes an optional section or constant.
    let less = "base = \"mnn\"\nname = \"Less\"\ngpu = []\n[cpu]\npreparation_work = []\n";
    let less = load_stack(&folder.put("less.toml", less)).unwrap();
    let whole = load_stack("mnn").unwrap();
    assert!(whole.gpu().is_some() && whole.cpu().unwrap().preparation_work.is_some());
    assert!(less.gpu().is_none() && less.cpu().unwrap().preparation_work.is_none());
    assert!(less.cpu().unwrap().first_touch.is_some());
    // Removing a required constant is an error.
    let none = folder.put("none.toml", "base = \"mnn\"\nname = \"None\"\ncpu.operator_overhead = []\n");
    let message = load_stack(&none).unwrap_err().to_string();
    assert!(message.contains("operator_overhead"), "{message}");
    let system = folder.put("my-android.toml", "base = \"android\"\nreclaim.swappiness.value = 10\n");
    assert_eq!(load_system(&system).unwrap().constants.reclaim.swappiness.value.0, 10.0);
}

#[test]
fn a_base_that_there_is_not_is_named_with_its_line() {
    let folder = Folder::new("none");
    let message = |text: &str| load(&folder.put("mine.toml", text)).unwrap_err().to_string();
    let unknown = message("name = \"x\"\nbase = \"galaxy-s23\"\n");
    let words =
        ["mine.toml:2: `base`: unknown device `galaxy-s23`", "did you mean `galaxy-s22`", "from this file's folder"];
    assert!(words.iter().all(|word| unknown.contains(word)), "{unknown}");
    let unread = message("base = \"other.toml\"\n");
    assert!(unread.contains("mine.toml:1: `base`: cannot read") && unread.contains("other.toml"), "{unread}");
    let number = message("base = 3\n");
    assert!(number.contains("mine.toml:1: `base`: expected text"), "{number}");
}

#[test]
fn a_base_in_a_circle_is_named_with_the_chain() {
    let folder = Folder::new("circle");
    let first = folder.put("a.toml", "base = \"b.toml\"\n");
    folder.put("b.toml", "\nbase = \"sub/../c.toml\"\n");
    folder.put("c.toml", "base = \"./a.toml\"\n");
    folder.put("sub/x", "");
    let message = load(&first).unwrap_err().to_string();
    let chain: Vec<&str> = message.split(" → ").collect();
    assert!(message.contains("c.toml:1: `base`: goes in a circle: "), "{message}");
    let ends = ["a.toml", "b.toml", "c.toml", "a.toml"];
    assert!(chain.len() == 4 && chain.iter().zip(ends).all(|(file, end)| file.ends_with(end)), "{message}");
    let own = folder.put("own.toml", "base = \"own.toml\"\n");
    assert!(load(&own).unwrap_err().to_string().contains("circle"));
}

#[test]
fn a_mistake_is_named_in_the_file_where_it_stands() {
    let folder = Folder::new("places");
    folder.put("base.toml", &MINE.replace("value = 40", "value = -40").replace("[gpu]", "[gpu]\nlanuch = 3"));
    let path = folder.put("mine.toml", "base = \"base.toml\"\n\n[dram]\npeek = 3\n");
    let message = load(&path).unwrap_err().to_string();
    let starts: Vec<&str> = message.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
    let expected = [
        "mine.toml:4: `dram.peek`: unknown key (did you mean `peak`?)",
        "base.toml:6: `gpu.lanuch`: unknown key (did you mean `launch`?)",
        "base.toml:7: `gpu.launch.value`: -40 is out of range",
    ];
    assert_eq!(starts.len(), expected.len(), "{message}");
    assert!(message.lines().zip(expected).all(|(line, start)| line.contains(start)), "{message}");
}

#[test]
fn a_cluster_and_the_flash_take_what_they_do_not_say_from_the_parts_that_they_name() {
    let file = "devices/calibrations/pixel-6.toml";
    let text = include_str!("../../calibrations/pixel-6.toml");
    let of = |device: &Device, name: &str| device.entries().into_iter().find(|entry| entry.name == name).unwrap();
    let own = Device::parse("pixel-6", file, text).unwrap();
    let rate = of(&own, "cpu.0.l1_rate");
    assert_eq!((rate.value, rate.file.as_str()), (32.0, "devices/calibrations/cores/cortex-x1.toml"));
    assert_eq!(of(&own, "storage.nand.dies").file, "devices/calibrations/flash/ufs31.toml");
    assert_eq!((of(&own, "cpu.0.cores").file.as_str(), own.constants.cpu[0].core.as_str()), (file, "Cortex-X1"));
    assert!(own.bases.is_empty());
    // A single constant is the file's own.
    let text = text.replacen("from = \"cortex-x1\"", "from = \"cortex-x1\"\nl1_rate.value = 16", 1);
    let rate = of(&Device::parse("pixel-6", file, &text).unwrap(), "cpu.0.l1_rate");
    assert_eq!((rate.value, rate.unit, rate.kind, rate.file.as_str()), (16.0, "B/cycle", Kind::Estimated, file));
    // A part that does not exist.
    let line = 1 + text.lines().position(|line| line == "from = \"cortex-x1\"").unwrap();
    let wrong = text.replacen("cortex-x1", "cortex-x9", 1);
    let message = Device::parse("pixel-6", file, &wrong).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{file}:{line}: `cpu.0.from`: unknown part `cortex-x9`")), "{message}");
    assert!(message.contains("did you mean `cortex-x") && message.contains("cortex-a55"), "{message}");
}
