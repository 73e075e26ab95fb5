//! A device and a stack with round numbers, so that tests can be worked by hand.

use haversack_devices::{Device, Stack};

/// Turns `key = 4 us` into `key = { value = 4, unit = "us", kind = "estimated", source = "test" }`.
fn expand(short: &str) -> String {
    let line = |line: &str| -> String {
        let mut parts = line.split_whitespace();
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(key), Some("="), Some(value), Some(unit)) if !value.starts_with(['"', '{']) => {
                format!("{key} = {{ value = {value}, unit = \"{unit}\", kind = \"estimated\", source = \"test\" }}")
            }
            _ => line.to_owned(),
        }
    };
    short.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// GPU: 2 units × 100 FLOP/cycle × 1 GHz = 200 GFLOP/s, 2 × 50 threads; DRAM: 10 GB/s × 0.5.
/// CPU: 2 big cores of 16 GFLOP/s and 2 little ones of 4 GFLOP/s.
/// DSP: 2 contexts × 128 B × 4 × 1 GHz = 1024 GOP/s of products, 2 × 128 B × 1 GHz = 256 G elements/s.
/// Heat: 10, 40 and 50 J/K behind 2, 3 and 5 K/W.
pub(crate) fn device_text() -> String {
    expand(
        r#"name = "Round"
soc = "test"
default_stack = "sage-opencl"
ram = 4 GiB

[[cpu]]
class = "big"
core = "B"
cores = 2 count
frequency = 2 GHz
frequency_lowest = 1 GHz
vector = 16 B
pipes = 1 count
l1 = 32 KiB
l2 = 256 KiB
l1_rate = 32 B/cycle
l2_rate = 16 B/cycle
l3_rate = 8 B/cycle
dram_bandwidth = 4 GB/s
power = 1000 mW

[[cpu]]
class = "little"
core = "L"
cores = 2 count
frequency = 1 GHz
frequency_lowest = 500 MHz
vector = 16 B
fp32_rate = 4 FLOP/cycle
fp16_rate = 8 FLOP/cycle
int8_rate = 16 OP/cycle
l1 = 32 KiB
l2 = 64 KiB
l1_rate = 16 B/cycle
l2_rate = 8 B/cycle
l3_rate = 4 B/cycle
dram_bandwidth = 1 GB/s
power = 100 mW

[cache]
l3 = 1 MiB

[gpu]
name = "G"
units = 2 count
clock = 1 GHz
fp32_rate = 100 FLOP/cycle
fp16_tensor_rate = 800 FLOP/cycle
threads = 50 count
blocks = 4 count
shared = 32 KiB
shared_rate = 50 B/cycle
l2 = 1 MiB
l2_bandwidth = 20 GB/s
launch = 10 us
round_trip = 100 us
barrier = 100 ns
atomic_interval = 2 ns
atomic_latency = 100 ns
power = 5 W
power_idle = 500 mW

[dsp]
name = "D"
version = "V66"
vector = 128 B
threads = 4 count
contexts = 2 count
vtcm = 256 KiB
l2 = 1 MiB
l2_line = 128 B
clock = 1 GHz
memory = 2 GiB
fastrpc = 300 us
queue = 60 us
poll = 500 us
power = 2 W

[thermal]
die_capacity = 10 J/K
die_resistance = 2 K/W
chassis_capacity = 40 J/K
chassis_resistance = 3 K/W
battery_capacity = 50 J/K
battery_resistance = 5 K/W
trip = 65 C
limit = 85 C

[dram]
technology = "test"
peak = 10 GB/s
achievable = 0.5 fraction
energy = 100 pJ/B
power_idle = 100 mW

[power]
idle = 1 W
rest_of_soc = 2 W
vector_factor = 1.5 factor
voltage_lowest = 0.6 fraction

[[dvfs]]
core = "B"
run = "test"
frequency = { value = [500, 1500, 2000], unit = "MHz", kind = "measured", source = "test" }
power = { value = [200, 600, 1000], unit = "mW", kind = "measured", source = "test" }
"#,
    )
}

/// 8 slots. Reading a page occupies the device for 10 us, 64 KiB for 65.536 us at 1 GB/s; alone they take 100 us and
/// 100 + 61,440 / 2,000 = 130.72 us; writes take 20 us and 500 MB/s, 250 beyond 1 MiB. At 1,000 CoreMark iterations per
/// second, a command takes 5 us on the core and 1 us per page.
pub(crate) const STORAGE: &str = r#"
[storage]
class = "test"
sequential_read = 1 GB/s
sequential_write = 500 MB/s
sustained_write = 250 MB/s
datasheet_read = 2 GB/s
random_read = 409.6 MB/s
random_write = 204.8 MB/s
latency_read = 100 us
latency_write = 40 us
write_cache = 1 MiB
queue_depth = 9 count
reserved_slots = 1 count

[memory]
display_width = 1440 count
display_height = 3200 count
"#;

/// The device with storage and a display, and some constants overridden.
pub(crate) fn device_with_storage(constants: &[(&str, f64)]) -> Device {
    let mut device = device_with("[[cpu]]", STORAGE);
    for &(name, value) in constants {
        device.set(name, value).unwrap();
    }
    device
}

/// Every efficiency is a half, every thread computes 4 outputs.
pub(crate) fn stack_text() -> String {
    let efficiency = "convolution = 50 %
depthwise_convolution = 0.5 fraction
gemm = 0.5 fraction
element_wise = 0.5 fraction
reduction = 0.5 fraction
layout = 0.5 fraction
gather = 0.5 fraction
optimiser = 0.5 fraction
";
    expand(&format!(
        "name = \"Round\"
graph = \"optimised\"
allocator = \"exact\"
dropout_mask = 4 B
allocation_rounding = 512 B

[gpu]
tensor_factor = 0.5 factor
outputs_per_thread = 4 count
index_ops_per_access = 10 count
operator_overhead = 5 us
launch_factor = 2 factor
direct_penalty = 1.1 factor
compile = 1 ms
winograd_saving = 2 factor
winograd_workspace = 4 factor
library_workspace = 8 MB
packing_efficiency = 0.5 fraction
system_allocation = 1 ms

[gpu.efficiency]
{efficiency}
[cpu]
operator_overhead = 3 us
direct_penalty = 1 factor
int8 = \"dot-product\"
product_traffic = 0 B/FLOP

[cpu.efficiency]
{efficiency}
[dsp]
operator_overhead = 20 us
preparation = 100 ms
short_depth = 4 count
depth_padding = 32 count
l2_rate = 20 B/cycle
miss = 25.6 ns
line = 50 ns
waiting_share = 0.5 fraction

[[dsp.library]]
name = \"round\"
from = \"V66\"
product_efficiency = 0.09765625 fraction
gradient_efficiency = 0.09765625 fraction
irregular_rate = 0.025 B/cycle
"
    ))
}

pub(crate) fn device() -> Device {
    Device::parse("round", "round.toml", &device_text()).unwrap()
}

/// The device with the line `addition` before the first one that starts with `key`.
pub(crate) fn device_with(key: &str, addition: &str) -> Device {
    Device::parse("round", "round.toml", &with(&device_text(), key, addition)).unwrap()
}

pub(crate) fn stack() -> Stack {
    Stack::parse("round", "stack.toml", &stack_text()).unwrap()
}

/// The stack with the line `addition` before the first one that starts with `key`.
pub(crate) fn stack_with(key: &str, addition: &str) -> Stack {
    Stack::parse("round", "stack.toml", &with(&stack_text(), key, addition)).unwrap()
}

fn with(text: &str, key: &str, addition: &str) -> String {
    text.replacen(&format!("\n{key}"), &format!("\n{}\n{key}", expand(addition)), 1)
}

pub(crate) fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

/// Numbers that look random and are the same every time (Knuth's MMIX constants).
pub(crate) struct Lcg(pub u64);

impl Lcg {
    /// From zero up to one.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.unit() * bound as f64) as u64
    }
}
