use haversack_policies::mandheling::{rescaling::Rescaler, scales::ScaleProcess};
#[test]
fn explore() {
    for k in [8u64, 16, 32] {
    let mut sum = 0.0; let mut hist = [0u32;31]; let mut miss=0.0;
    let mut ints = vec![];
    for l in 0..300 {
        let mut p = ScaleProcess::new(0, &format!("l{l}"));
        let mut r = Rescaler::new(k, l, 300);
        let mut held = 0; let mut n = 0; let mut ch = 0; let mut last = 0; let mut stale = 0;
        for b in 0..3000u64 {
            let s = p.next_batch();
            if b >= 1000 && s != last { ch += 1; }
            last = s;
            if r.due(b) { r.observe(b, s != held); held = s; if b >= 1000 { n += 1; } }
            if b >= 1000 && held != s { stale += 1; }
        }
        sum += n as f64 / 2000.0;
        miss += stale as f64 / 2000.0;
        hist[r.period() as usize] += 1;
        ints.push(2000.0 / ch as f64);
    }
    ints.sort_by(f64::total_cmp);
    println!("k {k}: share {} stale {} int {:?} {:?} {:?}\n{:?}", sum/300.0, miss/300.0, ints[3], ints[150], ints[296], hist);
    }
    // windows in one layer
    for l in ["conv1","features.0"] {
        let mut p = ScaleProcess::new(0, l);
        let v: Vec<u32> = (0..6000).map(|_| p.next_batch()).collect();
        let c: Vec<usize> = v.chunks(500).map(|w| 500 / w.windows(2).filter(|w| w[0]!=w[1]).count().max(1)).collect();
        println!("{l} {c:?} {:?}", v.iter().step_by(200).collect::<Vec<_>>());
    }
}
