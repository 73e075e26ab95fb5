//! Apps that come, change and go: their processes, what they use, and how long they take to come to the front.
//!
//! An app in front works whenever it is not stalled: it draws the screen. Others do nothing except touch their pages.

use std::collections::BTreeMap;

use haversack_devices::Nanos;
use haversack_memory::phone::{Access, ActorId, Backing, Part, PhoneError, PhoneMemory, ProcessId, RegionId};

use super::at_rest::{Pulse, Region};
use super::{AppState, Phone};

/// Apps with a larger score are in the background.
const IN_FRONT: i32 = 0;

/// Apps with at least this score are cached and frozen (`CACHED_APP_MIN_ADJ`, the freezer of Android 11): they write
/// nothing.
const FROZEN: i32 = 900;

/// All apps that were not closed, by name.
#[derive(Debug, Default)]
pub(super) struct Apps(BTreeMap<String, App>);

#[derive(Debug)]
struct App {
    process: ProcessId,
    anonymous: RegionId,
    file: RegionId,
    state: AppState,
    pulse: Pulse,
    /// When it began to come to the front.
    launches: Option<Nanos>,
}

impl App {
    /// The pages that it uses all the time while it is in front.
    fn in_use(&self) -> [Part; 2] {
        let AppState { anonymous, file, touched, .. } = self.state;
        let part = |id, bytes, access| Region { id, bytes, hot: touched }.in_use(access);
        [part(self.anonymous, anonymous, Access::Write), part(self.file, file, Access::Write)]
    }

    /// The pages that it touches as it changes: files are read.
    fn touched(&self) -> [Part; 2] {
        let [anonymous, file] = self.in_use();
        [anonymous, Part { access: Access::Read, ..file }]
    }

    fn is_in_front(&self) -> bool {
        self.state.adj <= IN_FRONT
    }

    /// When it next touches the pages it uses.
    fn due(&self) -> Nanos {
        if self.is_in_front() { self.pulse.due() } else { Nanos::MAX }
    }
}

impl Apps {
    /// Apps that were not killed.
    fn living<'a>(&'a self, memory: &'a PhoneMemory) -> impl Iterator<Item = &'a App> {
        self.0.values().filter(|app| memory.is_running(app.process))
    }

    /// The scores of those that live.
    pub(super) fn adjustments(&self, memory: &PhoneMemory) -> Vec<i16> {
        self.living(memory).filter_map(|app| i16::try_from(app.state.adj).ok()).collect()
    }

    /// The number of those that live in the background and are not frozen.
    pub(super) fn behind(&self, memory: &PhoneMemory) -> usize {
        let works = |app: &&App| !app.is_in_front() && app.state.adj < FROZEN;
        self.living(memory).filter(works).count()
    }

    /// The number of those that live in front.
    pub(super) fn in_front(&self, memory: &PhoneMemory) -> usize {
        self.living(memory).filter(|app| app.is_in_front()).count()
    }

    /// When the first of them next touches the pages it uses.
    pub(super) fn due(&self, memory: &PhoneMemory) -> Nanos {
        self.living(memory).map(App::due).min().unwrap_or(Nanos::MAX)
    }

    /// Those that are due at `now` touch the pages they use.
    pub(super) fn pulse(&mut self, now: Nanos, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        for app in self.0.values_mut().filter(|app| app.due() <= now) {
            if memory.is_running(app.process) {
                app.pulse.begin(now);
                memory.begin(app.pulse.actor, app.in_use())?;
            }
        }
        Ok(())
    }

    /// An app is `state` from `now` on, or has ended. One that was killed is launched again.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        name: &str,
        state: Option<AppState>,
        phone: &Phone,
        memory: &mut PhoneMemory,
    ) -> Result<(), PhoneError> {
        let known = self.0.remove(name);
        let known = match known {
            Some(app) if !memory.is_running(app.process) => {
                memory.remove_actor(app.pulse.actor);
                None
            }
            known => known,
        };
        let mut app = match (known, state) {
            (None, None) => return Ok(()),
            (Some(app), None) => {
                memory.remove_actor(app.pulse.actor);
                return memory.exit(app.process);
            }
            (Some(app), Some(state)) => {
                memory.set_adj(app.process, state.adj)?;
                memory.resize(app.anonymous, state.anonymous)?;
                memory.resize(app.file, state.file)?;
                let was_in_front = app.is_in_front();
                let app = App { state, ..app };
                let launches = app.launches.or((!was_in_front).then_some(now)).filter(|_| app.is_in_front());
                App { launches, ..app }
            }
            (None, Some(state)) => {
                let process = memory.spawn(name, state.adj)?;
                let app = App {
                    process,
                    anonymous: memory.map(process, state.anonymous, Backing::Anonymous(phone.app_pages))?,
                    file: memory.map(process, state.file, Backing::Code)?,
                    state,
                    pulse: Pulse::new(memory.add_actor(phone.front, 1), now),
                    launches: None,
                };
                let launches = Some(now).filter(|_| app.is_in_front());
                App { launches, ..app }
            }
        };
        app.pulse.begin(now);
        memory.set_computing(app.pulse.actor, app.is_in_front());
        memory.begin(app.pulse.actor, app.touched())?;
        self.0.insert(name.to_owned(), app);
        Ok(())
    }

    /// An app's thread has touched all its pages at `now`; `lives` is whether its process lives. Returns its name and
    /// launch time if it was coming to the front.
    pub(super) fn touched(&mut self, actor: ActorId, now: Nanos, lives: bool) -> Option<(String, Nanos)> {
        let (name, app) = self.0.iter_mut().find(|(_, app)| app.pulse.actor == actor)?;
        app.pulse.end(now);
        let launched = app.launches.take()?;
        lives.then(|| (name.clone(), now.saturating_sub(launched)))
    }
}
