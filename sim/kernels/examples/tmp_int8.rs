use haversack_devices::units::Bytes;
use haversack_kernels::measure::{self, *};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cat = measure::catalogue().unwrap();
    let ks: Vec<&Kernel> = cat.iter().filter(|k| args[0].split(',').any(|a| k.id().starts_with(a))).collect();
    for s in &args[1..] {
        let size = Bytes(s.parse().unwrap());
        let t = std::time::Instant::now();
        let m = measure::run(&ks, size, true, || ()).unwrap();
        println!("size {} edge {} took {:?}", size.0, measure::edge(size), t.elapsed());
        let e = measure::edge(size) as f64;
        for x in m {
            let time = size.0 as f64 / x.rate.0;
            let ops = if x.kernel.contains("gemm") {
                format!("{:7.1} GOP/s", 2.0 * e * e * e / time * 1e-9)
            } else {
                String::new()
            };
            println!(
                "{:28} {:10.1} us {:7.2} GB/s of limit {:.3} peer {:.2} {}  {}",
                x.kernel,
                time * 1e6,
                x.rate.0 * 1e-9,
                x.share_of_limit(),
                x.times_peer().unwrap_or(0.0),
                x.peer.as_ref().map_or("", |p| &p.name),
                ops
            );
        }
    }
}
