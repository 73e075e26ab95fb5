//! The measurements as a picture: a panel a family, a group of bars a kernel, a bar a size.

use haversack_bench::{Family, Measurement, SIZES};
use haversack_kernels::Isa;
use haversack_reports::figure::{Axis, BarSeries, Bars, Look, Meanings};
use haversack_reports::{Figure, Panel};

/// Every kernel's rate as a share of its limit, peers as outlined bars beside them.
pub(super) fn draw(measured: &[Measurement]) -> Figure {
    let mut figure = Figure::new("Kernels on this machine")
        .note("rates as shares of the fastest read, write or copy of the same tensor in the same run")
        .meanings(Meanings { solid: "kernel".into(), outlined: "peer".into(), ..Meanings::default() })
        .columns(1);
    for &family in Family::ALL {
        let found: Vec<&Measurement> =
            measured.iter().filter(|found| found.family == family && !is_twin(found, measured)).collect();
        if !found.is_empty() {
            figure = figure.panel(panel(family, &found));
        }
    }
    figure
}

/// Whether it is the kernel of another group again, under the name of the instructions that both use.
fn is_twin(found: &Measurement, measured: &[Measurement]) -> bool {
    let chosen = Isa::chosen().map_or("", Isa::name);
    let plain = found.kernel.strip_suffix(chosen).and_then(|name| name.strip_suffix('-'));
    plain.is_some_and(|plain| measured.iter().any(|other| other.kernel == plain))
}

fn panel(family: Family, measured: &[&Measurement]) -> Panel {
    let mut kernels: Vec<&str> = measured.iter().map(|found| found.kernel.as_str()).collect();
    kernels.dedup();
    let mut bars = Bars::new(kernels.iter().copied());
    for (size, label) in SIZES.into_iter().zip(["200 KiB", "1.5 MiB", "64 MiB"]) {
        let of = |kernel: &str| measured.iter().find(|found| found.kernel == kernel && found.size == size);
        let shares = kernels.iter().map(|kernel| of(kernel).map(|found| found.share_of_limit()));
        bars = bars.series(BarSeries::new(label, shares));
        if measured.iter().any(|found| found.peer.is_some()) {
            let share = |found: &&Measurement| Some(found.peer.as_ref()?.rate.0 / found.limit_rate.0);
            let shares = kernels.iter().map(|kernel| of(kernel).and_then(share));
            bars = bars.series(BarSeries::new(label, shares).look(Look::Outlined));
        }
    }
    let share = Axis::new("share of the limit");
    // From a swap an element to a tree, strategies span two orders of magnitude.
    let share = if family == Family::Strategy { share.log() } else { share };
    Panel::new(bars).title(family.title()).y(share)
}

#[cfg(test)]
mod tests {
    use haversack_bench::{Limit, Peer};
    use haversack_devices::units::BytesPerSecond;

    use super::*;

    fn measured(kernel: &str) -> Vec<Measurement> {
        let at = |size| Measurement {
            kernel: kernel.to_owned(),
            family: Family::Reduction,
            size,
            rate: BytesPerSecond(30.0),
            limit: Limit::Read,
            limit_rate: BytesPerSecond(40.0),
            peer: Some(Peer { name: "other".to_owned(), rate: BytesPerSecond(10.0) }),
        };
        SIZES.map(at).to_vec()
    }

    #[test]
    fn a_group_of_bars_is_a_kernel_and_a_twin_is_drawn_once() {
        let chosen = Isa::chosen().unwrap();
        let all = [measured("min"), measured(&format!("min-{chosen}")), measured("min-other")].concat();
        let figure = draw(&all);
        let [Panel { chart: haversack_reports::figure::Chart::Bars(bars), .. }] = figure.panels.as_slice() else {
            panic!("one panel of bars, not {figure:?}");
        };
        assert_eq!(bars.categories, ["min", "min-other"]);
        // Three sizes, each with its peer: 30 of 40, and 10 of 40.
        let shares: Vec<Vec<Option<f64>>> = bars.series.iter().map(|series| series.values.clone()).collect();
        let (own, peer) = (vec![Some(0.75); 2], vec![Some(0.25); 2]);
        assert_eq!(shares, [own.clone(), peer.clone(), own.clone(), peer.clone(), own, peer]);
    }

    #[test]
    fn a_lone_variant_is_drawn() {
        let chosen = Isa::chosen().unwrap();
        assert_eq!(draw(&measured(&format!("min-{chosen}"))).panels.len(), 1);
    }
}
