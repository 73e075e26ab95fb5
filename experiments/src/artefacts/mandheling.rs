//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

pub(crate) mod figure10;
pub(crate) mod section3;
mod setting;
pub(crate) mod table3;
pub(crate) mod table4;
pub(crate) mod table7;
pub(crate) mod table8;
