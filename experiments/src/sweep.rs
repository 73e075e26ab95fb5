//! stub
use std::path::{Path,PathBuf};
use std::num::NonZeroUsize;
use crate::error::CommandError;
/// Shard
#[derive(Clone,Copy,Debug)] pub struct Shard;
impl std::str::FromStr for Shard { type Err = String; fn from_str(_:&str)->Result<Self,String>{Ok(Self)} }
/// o
#[derive(Clone,Debug)] pub struct Options { /// a
pub specification: PathBuf, /// a
pub out: PathBuf, /// a
pub resume: bool, /// a
pub shard: Option<Shard>, /// a
pub jobs: Option<NonZeroUsize> }
/// # Errors
pub fn run(_:&Options)->Result<(),CommandError>{Ok(())}
/// # Errors
pub fn merge(_:&[PathBuf],_:&Path)->Result<(),CommandError>{Ok(())}
