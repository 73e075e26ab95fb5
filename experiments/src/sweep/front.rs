//! Memory against throughput: a Pareto front a device and model, one cloud a policy.

use std::collections::HashSet;

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, Front};
use haversack_reports::pareto::Sense;
use haversack_reports::{Figure, FigureError, Panel, Rendered};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Status;
use super::table::Table;

/// One picture's points, by policy in the order of the runs.
struct Cloud<'t> {
    device: &'t str,
    model: &'t str,
    name: String,
    policies: Vec<(&'t str, Vec<(f64, f64)>)>,
}

/// The fronts of `table`, each with the name of its files.
pub(super) fn draw(table: &Table, pool: &ThreadPool) -> Result<Vec<(String, Rendered)>, FigureError> {
    let clouds = clouds(table);
    // Names take their colours in one order, so that a policy looks the same in every picture.
    let mut order: Vec<&str> = Vec::new();
    for (policy, _) in clouds.iter().flat_map(|cloud| &cloud.policies) {
        if !order.contains(policy) {
            order.push(policy);
        }
    }
    pool.install(|| clouds.par_iter().map(|cloud| Ok((cloud.name.clone(), figure(cloud, &order).render()?))).collect())
}

fn clouds(table: &Table) -> Vec<Cloud<'_>> {
    let (devices, models, policies) = (table.texts("device"), table.texts("model"), table.texts("policy"));
    let (memory, throughput) = (table.wholes("peak_memory_bytes"), table.reals("samples_per_s"));
    let mut clouds: Vec<Cloud<'_>> = Vec::new();
    let mut names = HashSet::new();
    let rows = devices.iter().zip(models).zip(policies).zip(table.texts("status")).zip(memory.iter().zip(throughput));
    for ((((device, model), policy), status), (bytes, rate)) in rows {
        let (Some(device), Some(model), Some(policy)) = (device, model, policy) else { continue };
        let known = clouds.iter().position(|cloud| cloud.device == device && cloud.model == model);
        let place = known.unwrap_or_else(|| {
            clouds.push(Cloud { device, model, name: file_name(device, model, &mut names), policies: Vec::new() });
            clouds.len() - 1
        });
        let Some(cloud) = clouds.get_mut(place) else { continue };
        if !cloud.policies.iter().any(|(name, _)| name == policy) {
            cloud.policies.push((policy, Vec::new()));
        }
        if let (true, Some(bytes), Some(rate)) = (Status::Ok.is(status.as_deref()), bytes, rate) {
            let points = cloud.policies.iter_mut().find(|(name, _)| name == policy);
            points.into_iter().for_each(|(_, points)| points.push((Bytes(*bytes).megabytes(), *rate)));
        }
    }
    clouds
}

/// `pareto-<device>-<model>`, in characters that every file system takes, no name twice.
fn file_name(device: &str, model: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let stem: String = format!("pareto-{device}-{model}").chars().map(plain).take(120).collect();
    let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
    let free = std::iter::once(stem.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or(stem);
    taken.insert(name.clone());
    name
}

fn figure(cloud: &Cloud<'_>, order: &[&str]) -> Figure {
    let mut front = Front::new().senses([Sense::Minimise, Sense::Maximise]);
    for (policy, points) in &cloud.policies {
        front = front.cloud(*policy, points.clone());
    }
    let panel = Panel::new(front).x(Axis::new("peak memory").unit("MB")).y(Axis::new("throughput").unit("samples/s"));
    Figure::new(format!("{} on {}", cloud.model, cloud.device)).order(order.iter().copied()).panel(panel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_never_the_same() {
        let mut taken = HashSet::new();
        assert_eq!(file_name("my/phone.toml", "a b", &mut taken), "pareto-my_phone.toml-a_b");
        assert_eq!(file_name("my_phone.toml", "a_b", &mut taken), "pareto-my_phone.toml-a_b-2");
    }
}
