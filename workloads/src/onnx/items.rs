//! The items known for each tensor while a graph is walked.

use super::{Constant, Kind, Origin};
use crate::{Shape, ValueId};

/// A tensor, with the information known about it.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A value of the network.
    Value(ValueId),
    /// A trained weight.
    Weight(Weight),
    /// Known numbers.
    Constant(Constant),
    /// A tensor of known shape that needs no gradient: token ids, masks, large constants.
    Opaque(Opaque),
}

impl Item {
    /// Whether a gradient may flow to it.
    pub(super) const fn is_learned(&self) -> bool {
        matches!(self, Self::Value(_) | Self::Weight(_))
    }

    /// The kind of its elements.
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Value(_) | Self::Weight(_) => Kind::Real,
            Self::Constant(constant) => constant.kind,
            Self::Opaque(opaque) => opaque.kind,
        }
    }

    /// The constant; `None` if it is something else.
    pub(super) const fn constant(&self) -> Option<&Constant> {
        if let Self::Constant(constant) = self { Some(constant) } else { None }
    }
}

/// An initialiser that is trained, in an operator's view.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    /// The initialiser.
    pub(super) name: String,
    /// Its dimensions in this view.
    pub(super) dims: Vec<u64>,
    /// The order of its numbers in this view.
    pub(super) order: Order,
}

/// The order in which the numbers of an initialiser are viewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As stored.
    Stored,
    /// As a matrix whose rows are the stored one's columns.
    Transposed,
    /// In another order.
    Other,
}

impl Order {
    /// The order after the axes of a matrix are swapped.
    pub(super) const fn turned(self) -> Self {
        match self {
            Self::Stored => Self::Transposed,
            Self::Transposed => Self::Stored,
            Self::Other => Self::Other,
        }
    }
}

impl Weight {
    /// The matrix with its axes swapped.
    pub(super) fn turned(mut self) -> Self {
        self.dims.reverse();
        self.order = self.order.turned();
        self
    }
}

/// A tensor that needs no gradient and whose numbers are not known.
#[derive(Clone, Debug)]
pub(super) struct Opaque {
    pub(super) shape: Shape,
    pub(super) kind: Kind,
    pub(super) from: Provenance,
}

/// Where an opaque tensor comes from.
#[derive(Clone, Debug)]
pub(super) enum Provenance {
    /// It is an input of the graph.
    Input(String),
    /// It is a view of a constant.
    Constant(Origin),
    /// It is computed, from an input if there is one.
    Computed(Option<String>),
    /// It is computed from a value, by a function without a derivative.
    Derived(ValueId),
}

impl Opaque {
    /// A constant without its numbers, as `shape`.
    pub(super) fn of(constant: &Constant, shape: Shape) -> Self {
        let from = constant.origin.clone().map_or(Provenance::Computed(None), Provenance::Constant);
        Self { shape, kind: constant.kind, from }
    }

    /// The same tensor under another shape or a part of it, which is no longer an input itself.
    pub(super) fn part(self, shape: Shape) -> Item {
        let from = match self.from {
            Provenance::Input(name) => Provenance::Computed(Some(name)),
            other => other,
        };
        Item::Opaque(Self { shape, from, kind: self.kind })
    }

    /// Names the constant that it views.
    pub(super) fn rename(&mut self, name: &str) {
        if let Provenance::Constant(origin) = &mut self.from {
            name.clone_into(&mut origin.name);
        }
    }

    /// The input that it depends on.
    pub(super) fn source(&self) -> Option<&str> {
        match &self.from {
            Provenance::Input(name) | Provenance::Computed(Some(name)) => Some(name),
            Provenance::Constant(_) | Provenance::Computed(None) | Provenance::Derived(_) => None,
        }
    }
}

/// An input of the graph.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) kind: Kind,
}
