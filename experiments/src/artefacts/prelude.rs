//! What nearly every artefact uses: what it is given and gives back, scenarios, units, figures and tables.

pub(super) use haversack_devices::units::{Bytes, Nanos};
pub(super) use haversack_reports::figure::{
    Axis, BarSeries, Bars, Figure, Front, Lines, Look, Panel, Series, Stack, Stroke, Trace,
};
pub(super) use haversack_reports::table::{Cell, Table};

pub(super) use super::grid::{Grid, SIMULATED, beside, table, titled};
pub(super) use super::setting::{Set, mean, range, under, with};
pub(super) use crate::reproduce::reference::{Claim, Row};
pub(super) use crate::reproduce::{Answer, Artefact, ArtefactError, Context, Outcome, Run, median};
pub(super) use crate::run::Plan;
pub(super) use crate::scenario::{Budget, Scenario};
