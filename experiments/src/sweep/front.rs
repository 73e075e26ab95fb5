//! Memory against throughput: a Pareto front a device and model, one cloud a policy.

use std::collections::HashSet;

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, Front};
use haversack_reports::pareto::Sense;
use haversack_reports::{Figure, FigureError, Panel, Rendered};
use polars::prelude::DataFrame;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Status;

/// How runs end that are drawn.
const OK: &str = Status::Ok.word();

/// The clouds of a sweep, gathered from its tables one after the other.
#[derive(Default)]
pub(super) struct Fronts {
    clouds: Vec<Cloud>,
    names: HashSet<String>,
}

/// One picture's points, by policy in the order of the runs.
struct Cloud {
    device: String,
    model: String,
    name: String,
    policies: Vec<(String, Vec<(f64, f64)>)>,
}

impl Fronts {
    /// Takes the points of `table`, whose runs come after those before; none if it lacks a column.
    pub(super) fn see(&mut self, table: &DataFrame) {
        let texts = |name: &str| table.column(name).and_then(|column| column.str());
        let (devices, models, policies) = (texts("device"), texts("model"), texts("policy"));
        let memory = table.column("peak_memory_bytes").and_then(|column| column.u64());
        let throughput = table.column("samples_per_s").and_then(|column| column.f64());
        let (Ok(devices), Ok(models), Ok(policies), Ok(statuses), Ok(memory), Ok(throughput)) =
            (devices, models, policies, texts("status"), memory, throughput)
        else {
            return;
        };
        let rows = devices.iter().zip(models.iter()).zip(policies.iter()).zip(statuses.iter());
        let rows = rows.zip(memory.iter().zip(throughput.iter()));
        for ((((device, model), policy), status), (bytes, rate)) in rows {
            let (Some(device), Some(model), Some(policy)) = (device, model, policy) else { continue };
            let points = self.points(device, model, policy);
            if let (Some(OK), Some(bytes), Some(rate)) = (status, bytes, rate) {
                points.push((Bytes(bytes).megabytes(), rate));
            }
        }
    }

    /// The points of a policy in the picture of a device and a model.
    fn points(&mut self, device: &str, model: &str, policy: &str) -> &mut Vec<(f64, f64)> {
        let names = &mut self.names;
        let cloud = place(
            &mut self.clouds,
            |cloud| cloud.device == device && cloud.model == model,
            || Cloud {
                device: device.to_owned(),
                model: model.to_owned(),
                name: file_name(device, model, names),
                policies: Vec::new(),
            },
        );
        &mut place(&mut cloud.policies, |(name, _)| name == policy, || (policy.to_owned(), Vec::new())).1
    }

    /// The pictures, each with the name of its files.
    pub(super) fn draw(&self, pool: &ThreadPool) -> Result<Vec<(String, Rendered)>, FigureError> {
        // Names take their colours in one order, so that a policy looks the same in every picture.
        let mut order: Vec<&str> = Vec::new();
        for (policy, _) in self.clouds.iter().flat_map(|cloud| &cloud.policies) {
            if !order.contains(&policy.as_str()) {
                order.push(policy);
            }
        }
        let draw = |cloud: &Cloud| Ok((cloud.name.clone(), figure(cloud, &order).render()?));
        pool.install(|| self.clouds.par_iter().map(draw).collect())
    }
}

/// The item that `is_it` finds, made and put at the end if there is none.
fn place<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let found = items.iter().position(is_it).unwrap_or(items.len());
    if found == items.len() {
        items.push(make());
    }
    &mut items[found]
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

fn figure(cloud: &Cloud, order: &[&str]) -> Figure {
    let mut front = Front::new().senses([Sense::Minimise, Sense::Maximise]);
    for (policy, points) in &cloud.policies {
        front = front.cloud(policy.as_str(), points.clone());
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
