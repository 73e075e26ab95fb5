//! Reconstruction of `/proc/meminfo` from the memory fields of Carat's Android client.
//!
//! The client read `/proc/meminfo` by line number (`readMeminfo()` of carat-android): lines 1, 2, 6 and 7, as though
//! the line `MemAvailable`, which Linux has since 3.14, did not exist. It also mixed up the order of the values:
//!
//! | client | kernel | memoryUser | memoryFree | memoryActive | memoryInactive |
//! |---|---|---|---|---|---|
//! | before 2015-10-02 | without MemAvailable | MemTotal − MemFree | MemFree | Inactive | Active |
//! | before 2015-10-02 | with MemAvailable | MemTotal − MemFree | MemFree | Active | SwapCached |
//! | since (commit 2287bcc) | without MemAvailable | MemFree | MemTotal | Active | Inactive |
//! | since | with MemAvailable | MemFree | MemTotal | SwapCached | Active |
//!
//! Consecutive samples show which client it was: in the later client `memoryFree` is constant while the rest changes;
//! in the earlier one the sum of `memoryFree` and `memoryUser` is constant. For a single sample, its date and the
//! larger of the two decide. The field that would contain `SwapCached` shows whether lines are shifted: it is far below
//! a twentieth of the memory, which neither list is. One sample per device waits for its successor.
//!
//! Available memory ([`INFERRED_AVAILABLE`]) is between `MemFree`, if nothing could be reclaimed without swapping, and
//! `MemFree` plus all inactive memory, if that consists only of files; the middle is used. If `Inactive` is not known,
//! it is the least that the kernel allows relative to `Active`: its √(10 × gigabytes)th part (`inactive_is_low`).

use super::super::Result;
use super::super::context::{ImportContext, Place};
use super::super::report::Reason;
use crate::{CounterRow, INFERRED_AVAILABLE, UtcTime};

/// When the client changed (carat-android, commit 2287bcc): 2015-10-02 00:00:00 UTC.
const LATER_CLIENT: UtcTime = UtcTime::from_seconds(1_443_744_000);
/// The fraction of all memory that `SwapCached` is below, and both lists above: a twentieth.
const SWAP_CACHED_PARTS: u64 = 20;
/// The number of samples needed to change the decision on a device's kernel.
const CONVICTION: i32 = 4;

/// The generation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Earlier,
    Later,
}

/// The fields of a sample, in kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    active: u64,
    inactive: u64,
    free: u64,
    user: u64,
}

/// A sample that waits for the next one of its device.
#[derive(Clone, Debug)]
struct Held {
    place: Place,
    time: UtcTime,
    fields: Fields,
    client: Option<Client>,
}

#[derive(Clone, Debug)]
struct Device {
    user: Box<str>,
    held: Held,
    /// Above zero if lines are shifted, below if they are not; limited to [`CONVICTION`].
    shift: i32,
}

/// The devices of an import, by the users' places.
#[derive(Debug, Default)]
pub(super) struct Memories {
    devices: Vec<Option<Device>>,
}

impl Memories {
    /// Takes a sample's memory, and emits the previous sample of the device.
    pub(super) fn take(
        &mut self,
        user: &str,
        time: UtcTime,
        memory: &[f64; 4],
        context: &mut ImportContext<'_>,
    ) -> Result<()> {
        let Some(fields) = fields(memory, context)? else { return Ok(()) };
        let mut next = Held { place: context.place.clone(), time, fields, client: None };
        let Some(place) = context.users.place(user) else {
            // Each sample of a device that is not tracked is treated as a single one.
            return undo(user, &next, 0, context);
        };
        if self.devices.len() <= place {
            self.devices.resize(place + 1, None);
        }
        let Some(slot) = self.devices.get_mut(place) else { return Ok(()) };
        let Some(device) = slot else {
            *slot = Some(Device { user: user.into(), held: next, shift: 0 });
            return Ok(());
        };
        next.client = evidence(&device.held.fields, &fields);
        let mut held = std::mem::replace(&mut device.held, next);
        held.client = held.client.or(device.held.client);
        device.shift = (device.shift + held.vote()).clamp(-CONVICTION, CONVICTION);
        let shift = device.shift + device.held.vote();
        undo(user, &held, shift, context)
    }

    /// Emits the last sample of every device.
    pub(super) fn finish(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        for device in self.devices.drain(..).flatten() {
            undo(&device.user, &device.held, device.shift, context)?;
        }
        Ok(())
    }
}

impl Held {
    /// The client: by the neighbouring samples if they show it, otherwise by this sample.
    fn client(&self) -> Client {
        let is_earlier = self.time < LATER_CLIENT || self.fields.user > self.fields.free;
        self.client.unwrap_or(if is_earlier { Client::Earlier } else { Client::Later })
    }

    /// One if the sample indicates shifted lines, otherwise minus one.
    fn vote(&self) -> i32 {
        let Fields { active, inactive, free, user } = self.fields;
        let (suspect, total) = match self.client() {
            Client::Earlier => (inactive, user.saturating_add(free)),
            Client::Later => (active, free),
        };
        if suspect.saturating_mul(SWAP_CACHED_PARTS) < total { 1 } else { -1 }
    }
}

/// The client that two consecutive samples of a device indicate.
fn evidence(one: &Fields, other: &Fields) -> Option<Client> {
    let sum = |fields: &Fields| fields.free.saturating_add(fields.user);
    if one.free == other.free {
        Some(Client::Later)
    } else if sum(one) == sum(other) {
        Some(Client::Earlier)
    } else {
        None
    }
}

/// The fields, if they are plausible as memory.
fn fields(memory: &[f64; 4], context: &mut ImportContext<'_>) -> Result<Option<Fields>> {
    let [active, inactive, free, user] = *memory;
    let named = [
        ("memory.memoryActive", active),
        ("memory.memoryInactive", inactive),
        ("memory.memoryFree", free),
        ("memory.memoryUser", user),
    ];
    if let Some((name, value)) = named.iter().find(|(_, value)| *value < 0.0) {
        context.find(Reason::NegativeMemory, name, || format!("expected kB, found {value}"))?;
        return Ok(None);
    }
    let [active, inactive, free, user] = named.map(|(_, value)| value as u64);
    if active | inactive | free | user == 0 {
        context.find(Reason::NoMemory, "memory", || "expected kB, found nothing but zeros".into())?;
        return Ok(None);
    }
    // A phone with a petabyte of memory does not exist.
    if let Some((name, value)) = named.iter().find(|(_, value)| *value >= 1e12) {
        context.find(Reason::ImplausibleMemory, name, || format!("expected kB, found {value}"))?;
        return Ok(None);
    }
    Ok(Some(Fields { active, inactive, free, user }))
}

/// Emits the values of `/proc/meminfo`, in bytes.
fn undo(user: &str, held: &Held, shift: i32, context: &mut ImportContext<'_>) -> Result<()> {
    let client = held.client();
    let is_shifted = if shift == 0 { held.vote() > 0 } else { shift > 0 };
    let Fields { active, inactive, free, user: used } = held.fields;
    let (total, mem_free) = match client {
        Client::Earlier => (used + free, free),
        Client::Later => (free, used),
    };
    let lists = match (client, is_shifted) {
        (Client::Earlier, false) => [("Active", inactive), ("Inactive", active)],
        (Client::Earlier, true) => [("Active", active), ("SwapCached", inactive)],
        (Client::Later, false) => [("Active", active), ("Inactive", inactive)],
        (Client::Later, true) => [("Active", inactive), ("SwapCached", active)],
    };
    if mem_free > total || lists.iter().any(|(_, size)| *size > total) {
        return context.find_at(&held.place, Reason::ImplausibleMemory, "memory", || {
            format!(
                "expected parts of {total} kB in all, found memoryUser {used}, memoryFree {free}, memoryActive {active}, \
                 memoryInactive {inactive}"
            )
        });
    }
    context.report.memory_clients.add(match (client, is_shifted) {
        (Client::Earlier, false) => "before 2015-10-02, kernel without MemAvailable",
        (Client::Earlier, true) => "before 2015-10-02, kernel with MemAvailable",
        (Client::Later, false) => "since 2015-10-02, kernel without MemAvailable",
        (Client::Later, true) => "since 2015-10-02, kernel with MemAvailable",
    });
    let inactive = lists.iter().find(|(name, _)| *name == "Inactive").map(|(_, size)| *size);
    let active = lists.iter().find(|(name, _)| *name == "Active").map_or(0, |(_, size)| *size);
    let inactive = inactive.unwrap_or_else(|| active / (10 * (active >> 20)).isqrt().max(1));
    let available = (mem_free + inactive / 2).min(total);
    let known = [("MemTotal", total), ("MemFree", mem_free)].into_iter().chain(lists);
    for (counter, kilobytes) in known.chain([(INFERRED_AVAILABLE, available)]) {
        context.counter(CounterRow { user, time: held.time, counter, value: kilobytes as f64 * 1024.0 })?;
    }
    Ok(())
}
