use haversack_kernels::Isa;
use haversack_kernels::int8::*;
fn now() -> f64 {
    let mut t = std::mem::MaybeUninit::<[i64; 2]>::uninit();
    unsafe {
        unsafe extern "C" {
            fn clock_gettime(c: i32, t: *mut [i64; 2]) -> i32;
        }
        clock_gettime(3, t.as_mut_ptr());
        let t = t.assume_init();
        t[0] as f64 + t[1] as f64 * 1e-9
    }
}
fn main() {
    let isa = Isa::chosen().unwrap();
    for (m, k, n) in [
        (512, 512, 512),
        (1024, 8, 1024),
        (1024, 16, 1024),
        (1024, 32, 1024),
        (1024, 64, 1024),
        (1024, 128, 1024),
        (1024, 256, 1024),
        (50176, 27, 32),
        (50176, 9, 16),
        (12544, 576, 64),
        (4096, 4608, 64),
        (576, 65536, 64),
    ] {
        let x: Vec<i8> =
            (0..m * k).map(|i| (i as u64).wrapping_mul(0x9e3779b97f4a7c15).rotate_right(40) as i8).collect();
        let w: Vec<i8> =
            (0..n * k).map(|i| (i as u64).wrapping_mul(0xc2b2ae3d27d4eb4f).rotate_right(40) as i8).collect();
        let (a, b) = (Matrix::new(&x, m, k).unwrap(), Matrix::new(&w, k, n).unwrap());
        let mut g = Gemm::new(isa);
        let mut o = vec![0i8; m * n];
        let mut o32 = vec![0i32; m * n];
        let s = g.multiply_rescaled(a, b, &mut o).unwrap();
        let mut t = [vec![], vec![], vec![], vec![]];
        let reps = (300_000_000 / (m * k * n)).max(1);
        for _ in 0..15 {
            for v in 0..4 {
                let st = now();
                for _ in 0..reps {
                    match v {
                        0 => g.multiply_shifted(a, b, s, &mut o).unwrap(),
                        1 => {
                            g.multiply_rescaled(a, b, &mut o).unwrap();
                        }
                        2 => g.multiply(a, b, &mut o32).unwrap(),
                        _ => {
                            g.multiply(a, b, &mut o32).unwrap();
                            let s = scale_of(&o32, isa);
                            round_shift(&o32, s, &mut o, isa).unwrap();
                        }
                    }
                }
                t[v].push((now() - st) / reps as f64);
            }
        }
        for v in &mut t {
            v.sort_by(f64::total_cmp);
        }
        let md = |v: usize| t[v][7];
        println!(
            "{m}x{k}x{n} shift {s}: static {:.3} ms {:.1} GOP/s; dynamic/static {:.2}; passes/static {:.2}; i32/static {:.2}",
            md(0) * 1e3,
            2.0 * (m * k * n) as f64 / md(0) * 1e-9,
            md(1) / md(0),
            md(3) / md(0),
            md(2) / md(0)
        );
    }
}
