//! A deterministic training log of a residual network, shared by tests, bench and example.

use std::fmt::Write;

/// Writes instructions and keeps track of tensors still needed.
struct Writer {
    text: String,
    seed: u64,
}

impl Writer {
    /// A time within a fifth of `around`, from a fixed linear congruential sequence, so that
    /// equal layers are not equal candidates.
    fn time(&mut self, around: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        around * (800 + (self.seed >> 33) % 400) / 1000
    }

    fn constant(&mut self, name: &str, bytes: u64) {
        let _ = writeln!(self.text, r#"{{"INSTRUCTION":"CONSTANT","NAME":"{name}"}}"#);
        self.memory(name, bytes);
    }

    fn memory(&mut self, name: &str, bytes: u64) {
        let _ = writeln!(self.text, r#"{{"INSTRUCTION":"MEMORY","MEMORY":"{bytes}","NAME":"{name}"}}"#);
    }

    fn call(&mut self, name: &str, args: &[&str], results: &[(&str, u64)], around: u64) {
        let quoted =
            |names: &mut dyn Iterator<Item = &str>| names.map(|n| format!(r#""{n}""#)).collect::<Vec<_>>().join(",");
        let (args, time) = (quoted(&mut args.iter().copied()), self.time(around));
        let made = quoted(&mut results.iter().map(|r| r.0));
        let _ = writeln!(
            self.text,
            r#"{{"ARGS":[{args}],"INSTRUCTION":"CALL","NAME":"{name}","RESULT":[{made}],"TIME":"{time}"}}"#
        );
        for (result, bytes) in results {
            self.memory(result, *bytes);
            let _ = writeln!(self.text, r#"{{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"{result}"}}"#);
        }
    }

    fn release(&mut self, name: &str) {
        let _ = writeln!(self.text, r#"{{"INSTRUCTION":"RELEASE","NAME":"{name}"}}"#);
    }
}

const MIB: u64 = 1 << 20;

/// The log of `steps` training steps of a network of `blocks` residual blocks.
pub(crate) fn residual_network(blocks: usize, steps: usize) -> String {
    let mut w = Writer { text: String::new(), seed: 1 };
    let _ = writeln!(w.text, r#"{{"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}}"#);
    for step in 0..steps {
        training_step(&mut w, step, blocks);
    }
    w.text
}

/// Blocks of two convolutions, each with batch normalisation, in four stages of which each has half the activations of
/// the one before: 18 operators per block, and 5 around them. The script keeps each ReLU's input although nothing
/// needs it, as real scripts do. Updates are released: h_LRU would evict them early, would have to bring all back at
/// the end, and would thrash.
fn training_step(w: &mut Writer, step: usize, blocks: usize) {
    let size = |block: usize| (16 * MIB) >> (4 * block / blocks.max(1)).min(3);
    let named = |part: &str, block: usize| format!("{part}{block}s{step}");
    let around = |part: &str| format!("{part}s{step}");
    let (input, pooled, gpooled, loss) = (around("input"), around("pooled"), around("gpooled"), around("loss"));
    w.constant(&input, 2 * MIB);
    w.call("conv", &[&input], &[(&named("a", 0), size(0))], 300_000);
    for b in 0..blocks {
        let n = |part: &str| named(part, b);
        let (x, y) = (n("a"), named("a", b + 1));
        for half in ["p", "q"] {
            w.constant(&n(&format!("w{half}")), MIB / 4);
        }
        w.call("conv", &[&x, &n("wp")], &[(&n("cp"), size(b))], 900_000);
        w.call("bn", &[&n("cp")], &[(&n("bp"), size(b)), (&n("sp"), 4096)], 150_000);
        w.call("relu", &[&n("bp")], &[(&n("rp"), size(b))], 80_000);
        w.call("conv", &[&n("rp"), &n("wq")], &[(&n("cq"), size(b))], 900_000);
        w.call("bn", &[&n("cq")], &[(&n("bq"), size(b)), (&n("sq"), 4096)], 150_000);
        w.call("add", &[&n("bq"), &x], &[(&n("z"), size(b))], 90_000);
        w.call("relu", &[&n("z")], &[(&y, size(b + 1))], 80_000);
    }
    let last = named("a", blocks);
    w.call("pool", &[&last], &[(&pooled, 65_536)], 40_000);
    w.call("loss", &[&pooled], &[(&loss, 4)], 20_000);
    w.call("loss_backward", &[&pooled, &loss], &[(&gpooled, 65_536)], 20_000);
    w.release(&pooled);
    w.call("pool_backward", &[&gpooled, &last], &[(&named("g", blocks), size(blocks))], 40_000);
    w.release(&gpooled);
    for b in (0..blocks).rev() {
        let n = |part: &str| named(part, b);
        let (x, y) = (n("a"), named("a", b + 1));
        let above = named("g", b + 1);
        w.call("relu_backward", &[&above, &y], &[(&n("gz"), size(b))], 80_000);
        w.release(&above);
        w.release(&y);
        w.call("bn_backward", &[&n("gz"), &n("cq"), &n("sq")], &[(&n("gcq"), size(b))], 200_000);
        w.release(&n("cq"));
        w.release(&n("sq"));
        w.call("conv_weight", &[&n("gcq"), &n("rp")], &[(&n("gwq"), MIB / 4)], 900_000);
        w.call("conv_input", &[&n("gcq"), &n("wq")], &[(&n("grp"), size(b))], 900_000);
        w.release(&n("gcq"));
        w.call("relu_backward", &[&n("grp"), &n("rp")], &[(&n("gbp"), size(b))], 80_000);
        w.release(&n("grp"));
        w.release(&n("rp"));
        w.call("bn_backward", &[&n("gbp"), &n("cp"), &n("sp")], &[(&n("gcp"), size(b))], 200_000);
        w.release(&n("gbp"));
        w.release(&n("cp"));
        w.release(&n("sp"));
        w.call("conv_weight", &[&n("gcp"), &x], &[(&n("gwp"), MIB / 4)], 900_000);
        w.call("conv_input", &[&n("gcp"), &n("wp")], &[(&n("gx"), size(b))], 900_000);
        w.release(&n("gcp"));
        w.call("add", &[&n("gx"), &n("gz")], &[(&n("g"), size(b))], 90_000);
        w.release(&n("gx"));
        w.release(&n("gz"));
        for kept in ["bp", "bq", "z"] {
            w.release(&n(kept));
        }
        for (half, update) in [("p", "up"), ("q", "uq")] {
            w.call("step", &[&n(&format!("w{half}")), &n(&format!("gw{half}"))], &[(&n(update), MIB / 4)], 30_000);
            w.release(&n(&format!("gw{half}")));
            w.release(&n(update));
        }
    }
    for name in [named("a", 0), named("g", 0), loss] {
        w.release(&name);
    }
}

/// About 500 operators: two steps of 5 + 18 × 14 calls.
pub(crate) fn five_hundred_operators() -> String {
    residual_network(14, 2)
}
