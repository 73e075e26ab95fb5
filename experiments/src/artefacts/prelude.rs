//! Imports for nearly every artefact: its context and outcome, scenarios, units, charts and data.

pub(super) use std::sync::Arc;

pub(super) use anyhow::{Context as _, Result, anyhow, bail, ensure};
pub(super) use haversack_devices::units::{Bytes, Nanos};
pub(super) use haversack_reports::figure::{Axis, BarSeries, Bars, Front, Lines, Look, Series, Stroke, Trace};
pub(super) use haversack_training::Record;
pub(super) use haversack_workloads::data::Part;
pub(super) use rayon::prelude::*;

pub(super) use super::chart::{Quantity, axis, curves, from_zero, test_accuracy};
pub(super) use super::records::{Records, show};
pub(super) use super::setting::{Set, milliseconds, trained, under, with};
pub(super) use super::sweeps::{records, swept};
pub(super) use crate::papers::reference::{Claim, ReferenceRow};
pub(super) use crate::papers::{Answer, spelled};
pub(super) use crate::quantities::{mean, median};
pub(super) use crate::reproduce::{Context, Outcome};
pub(super) use crate::run::Plan;
pub(super) use crate::scenario::{Budget, Scenario};
