//! The kernels that can be measured, each with its limit and its peer.

mod compression;
mod integers;
mod masks;
mod packing;
mod products;
mod reductions;

use haversack_devices::units::Bytes;

use crate::bench::contender::Contender;
use crate::bench::limit::Limit;
use crate::bench::{Family, Kernel};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;

/// Every kernel as it runs here, and its variants: one for each instruction set that may be used.
///
/// # Errors
/// `HAVERSACK_SIMD` names an instruction set that this processor lacks.
pub(crate) fn catalogue() -> Result<Vec<Kernel>, KernelError> {
    let mut list = List { chosen: Isa::chosen()?, largest: None, kernels: Vec::new() };
    reductions::add(&mut list);
    packing::add(&mut list);
    masks::add(&mut list);
    integers::add(&mut list);
    compression::add(&mut list);
    // Last, so that the other kernels have the same positions at every size.
    products::add(&mut list);
    Ok(list.kernels)
}

/// The catalogue in the making.
struct List {
    chosen: Isa,
    /// Kernels that are added from now on are measured on tensors up to this size.
    largest: Option<Bytes>,
    kernels: Vec<Kernel>,
}

/// The description that a kernel and its variants share.
struct Entry {
    id: String,
    about: String,
    family: Family,
    limit: Limit,
    peer: Option<Contender>,
}

impl Entry {
    fn new(id: &str, about: &str, (family, limit): (Family, Limit), peer: Option<Contender>) -> Self {
        Self { id: id.to_owned(), about: about.to_owned(), family, limit, peer }
    }
}

impl List {
    /// Adds a kernel in the instruction set that policies use.
    fn one(&mut self, entry: Entry, contender: impl FnOnce(String, Isa) -> Contender) {
        let Entry { id, about, family, limit, peer } = entry;
        let contender = contender(id, self.chosen);
        self.kernels.push(Kernel { contender, about, family, limit, peer, largest: self.largest });
    }

    /// Adds a kernel in the instruction set that policies use, and a variant for each set that can be selected.
    fn each(&mut self, entry: Entry, contender: impl Fn(String, Isa) -> Contender) {
        let Entry { id, about, family, limit, peer } = &entry;
        let variant = |isa| {
            (isa, Entry::new(&format!("{id}-{isa}"), &format!("{about}, by {isa}"), (*family, *limit), peer.clone()))
        };
        // `HAVERSACK_SIMD` also excludes wider instruction sets.
        let chosen = self.chosen;
        let variants: Vec<_> = Isa::available().into_iter().filter(|&isa| isa <= chosen).map(variant).collect();
        self.one(entry, &contender);
        for (isa, variant) in variants {
            self.one(variant, |id, _| contender(id, isa));
        }
    }
}
