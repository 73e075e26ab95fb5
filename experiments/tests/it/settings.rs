//! Values of devices and systems that a scenario changes: `--device-set`, `--system-set`, and their tables in sweeps.

use super::support::{call, call_in, json, refusal};

fn simulated(rest: &str) -> serde_json::Value {
    let line = format!("simulate --device galaxy-s22 --model lenet5 --policy original --format json {rest}");
    json(&call(&line))
}

#[test]
fn a_constant_of_the_device_is_changed_for_one_run() {
    let plain = simulated("--stack mnn-2");
    let slow = simulated("--stack mnn-2 --device-set dram.achievable=10% --device-set ram=6GiB");
    assert!(plain["iteration_time_s"].as_f64() < slow["iteration_time_s"].as_f64());
    assert_eq!(slow["scenario"]["device_set"]["ram"], "6GiB");
    assert!(plain["scenario"].get("device_set").is_none());
}

#[test]
fn memory_and_flash_of_a_phone_in_use_can_be_swept() {
    let folder = tempfile::tempdir().unwrap();
    let specification = "device = \"galaxy-s22\"\nmodel = \"lenet5\"\nstack = \"mnn-2\"\nsystem = \"android\"\n\
        device_set = { ram = [\"6 GiB\", \"8 GiB\"], storage = [\"ufs21\", \"ufs31\"] }\n\
        system_set = { \"reclaim.swappiness\" = [60, 160], reclaim.balance = \"both\" }\n";
    std::fs::write(folder.path().join("s.toml"), specification).unwrap();
    let ran = call_in(folder.path(), &["sweep", "s.toml", "--out", "o"]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = std::fs::read_to_string(folder.path().join("o/results.csv")).unwrap();
    assert_eq!(text.matches(",ok,").count(), 8, "{text}");
    for one in ["ram=6 GiB,storage=ufs21", "ram=8 GiB,storage=ufs31", "reclaim.balance=both,reclaim.swappiness=60"] {
        assert!(text.contains(one), "{one}: {text}");
    }
}

#[test]
fn what_cannot_be_changed_is_named() {
    let refused = |rest: &str| {
        let line = format!("simulate --device galaxy-s22 --model lenet5 {rest}");
        refusal(&call(&line), 2)
    };
    let unknown = refused("--device-set rom=4GiB");
    assert!(unknown.contains("--device-set") && unknown.contains("(did you mean `ram`?)"), "{unknown}");
    let nothing = refused("--device-set ram");
    assert!(nothing.contains("--device-set") && nothing.contains("such as ram=6GiB"), "{nothing}");
    let alone = refused("--system-set reclaim.swappiness=60");
    assert!(alone.contains("--system-set") && alone.contains("name a system"), "{alone}");
    let word = refused("--system android --system-set reclaim.balance=all");
    assert!(word.contains("--system-set") && word.contains("files-first"), "{word}");
}
