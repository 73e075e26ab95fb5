//! Blocks of consecutively numbered pages, a bitmap of the free pages, and the links that chain an activation's pages.
//! This module knows lists of pages, not activations.

use haversack_devices::{Bytes, ensure};

use super::Effects;

/// End of a list.
const NONE: u32 = u32::MAX;

/// The largest number of pages in an arena for any budget: larger tables would not fit the host.
const MOST_PAGES: u64 = 1 << 26;

/// Pages in list order, and the bytes that they store.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    size: u64,
}

impl List {
    pub(super) const fn size(self) -> u64 {
        self.size
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    page: u64,
    /// Pages of a whole block.
    step: u64,
    budget: u64,
    /// The end of each block, in pages.
    ends: Vec<u32>,
    /// The page after each page in its list.
    next: Vec<u32>,
    free: FreePages,
    used: u32,
    data: Option<Vec<u8>>,
}

impl Blocks {
    /// Nothing reserved yet. `page` and `step` are positive, `step` no smaller than `page`.
    pub(super) fn new(page: u64, step: u64, budget: u64, with_data: bool) -> Self {
        Self { page, step: step / page, budget, data: with_data.then(Vec::new), ..Self::default() }
    }

    pub(super) const fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes of pages in use.
    pub(super) fn used(&self) -> u64 {
        u64::from(self.used) * self.page
    }

    /// Bytes of all blocks.
    pub(super) fn reserved(&self) -> u64 {
        self.next.len() as u64 * self.page
    }

    /// Bytes of pages once the arena is fully grown.
    pub(super) fn capacity(&self) -> u64 {
        (self.budget / self.page).min(MOST_PAGES) * self.page
    }

    /// Takes the lowest free pages for a list of `size` bytes, with as many new blocks as necessary.
    ///
    /// # Errors
    /// The bytes of missing pages; nothing changes then.
    pub(super) fn take(&mut self, size: u64) -> Result<(List, Effects), u64> {
        let wanted = size.div_ceil(self.page);
        let most = self.capacity() / self.page;
        let missing = u64::from(self.used).saturating_add(wanted).saturating_sub(most);
        ensure!(missing == 0, missing.saturating_mul(self.page));
        let mut effects = Effects::default();
        while (self.next.len() as u64 - u64::from(self.used)) < wanted {
            let block = self.step.min(most - self.next.len() as u64);
            self.add_block(block as usize);
            effects.allocations += 1;
            effects.allocated += Bytes(block * self.page);
        }
        let mut list = List { head: NONE, size };
        let mut last = NONE;
        for _ in 0..wanted {
            let Some(page) = self.free.take_lowest() else { break };
            self.next[page as usize] = NONE;
            match last {
                NONE => list.head = page,
                _ => self.next[last as usize] = page,
            }
            last = page;
        }
        self.used += wanted as u32;
        Ok((list, effects))
    }

    fn add_block(&mut self, pages: usize) {
        let end = self.next.len() + pages;
        self.next.resize(end, NONE);
        self.free.grow(end);
        self.ends.push(end as u32);
        if let Some(data) = &mut self.data {
            data.resize(end * self.page as usize, 0);
        }
    }

    /// Frees all pages of a list.
    pub(super) fn give_back(&mut self, list: List) {
        self.free_from(list.head);
    }

    fn free_from(&mut self, mut page: u32) {
        while page != NONE {
            self.free.put(page);
            self.used -= 1;
            page = self.next[page as usize];
        }
    }

    /// Frees the pages beyond the first `size` bytes.
    pub(super) fn cut(&mut self, list: &mut List, size: u64) {
        list.size = size;
        let kept = size.div_ceil(self.page);
        if kept == 0 {
            self.free_from(list.head);
            list.head = NONE;
            return;
        }
        let mut last = list.head;
        for _ in 1..kept {
            last = self.next[last as usize];
        }
        let rest = std::mem::replace(&mut self.next[last as usize], NONE);
        self.free_from(rest);
    }

    /// The number of blocks within a budget, and of pages in them.
    fn kept(&self, budget: u64) -> (usize, u32) {
        let most = budget / self.page;
        let blocks = self.ends.partition_point(|&end| u64::from(end) <= most);
        (blocks, blocks.checked_sub(1).map_or(0, |last| self.ends[last]))
    }

    /// Bytes of pages that must be freed before the arena fits `budget`.
    pub(super) fn shortfall(&self, budget: u64) -> u64 {
        u64::from(self.used.saturating_sub(self.kept(budget).1)) * self.page
    }

    /// Changes the budget, which must have no [`shortfall`](Self::shortfall): releases whole blocks from the end, after
    /// copying the pages in use there into the lowest free ones that stay. `lists` are all lists.
    pub(super) fn set_budget<'a>(&mut self, budget: u64, lists: impl Iterator<Item = &'a mut List>) -> Effects {
        self.budget = budget;
        let (blocks, end) = self.kept(budget);
        let mut effects = Effects::default();
        if blocks == self.ends.len() {
            return effects;
        }
        effects.releases = (self.ends.len() - blocks) as u32;
        effects.released = Bytes((self.next.len() as u64 - u64::from(end)) * self.page);
        for list in lists {
            effects.copied += Bytes(self.move_below(list, end));
        }
        self.ends.truncate(blocks);
        self.next.truncate(end as usize);
        self.free.truncate(end as usize);
        if let Some(data) = &mut self.data {
            data.truncate(end as usize * self.page as usize);
        }
        effects
    }

    /// Moves the pages of a list from `end` on to free ones before it; returns the copied bytes.
    fn move_below(&mut self, list: &mut List, end: u32) -> u64 {
        let mut copied = 0;
        let mut left = list.size;
        let mut before = NONE;
        let mut page = list.head;
        while page != NONE {
            let following = self.next[page as usize];
            let held = left.min(self.page);
            if page >= end
                && let Some(target) = self.free.take_lowest()
            {
                self.copy(page, target, held);
                self.next[target as usize] = following;
                match before {
                    NONE => list.head = target,
                    _ => self.next[before as usize] = target,
                }
                copied += held;
                page = target;
            }
            before = page;
            page = following;
            left -= held;
        }
        copied
    }

    fn copy(&mut self, from: u32, to: u32, bytes: u64) {
        if let Some(data) = &mut self.data {
            let (from, to) = (from as usize * self.page as usize, to as usize * self.page as usize);
            data.copy_within(from..from + bytes as usize, to);
        }
    }

    /// The page numbers of a list, in list order.
    pub(super) fn pages(&self, list: List) -> impl Iterator<Item = u32> {
        let first = (list.head != NONE).then_some(list.head);
        std::iter::successors(first, |&page| Some(self.next[page as usize]).filter(|&next| next != NONE))
    }

    /// Bytes of the longest run of free pages.
    pub(super) fn longest_free(&self) -> u64 {
        self.free.longest_run(self.next.len()) as u64 * self.page
    }

    /// Whether the arena keeps bytes.
    pub(super) const fn has_data(&self) -> bool {
        self.data.is_some()
    }

    /// Writes `bytes`, as many as the list stores, into its pages.
    pub(super) fn write(&mut self, list: List, bytes: &[u8]) {
        let mut page = list.head;
        for chunk in bytes.chunks(self.page as usize) {
            let start = page as usize * self.page as usize;
            if let Some(data) = &mut self.data {
                data[start..start + chunk.len()].copy_from_slice(chunk);
            }
            page = self.next[page as usize];
        }
    }

    /// Reads the list's pages into `bytes`, as many as the list stores.
    pub(super) fn read(&self, list: List, bytes: &mut [u8]) {
        let mut page = list.head;
        for chunk in bytes.chunks_mut(self.page as usize) {
            let start = page as usize * self.page as usize;
            if let Some(data) = &self.data {
                chunk.copy_from_slice(&data[start..start + chunk.len()]);
            }
            page = self.next[page as usize];
        }
    }
}

/// A bit for each page, set where it is free.
#[derive(Clone, Debug, Default)]
struct FreePages {
    words: Vec<u64>,
    pages: usize,
    /// No word before this one has a bit set; it may be past the end.
    lowest: usize,
}

impl FreePages {
    fn put(&mut self, page: u32) {
        let word = page as usize / 64;
        self.words[word] |= 1 << (page % 64);
        self.lowest = self.lowest.min(word);
    }

    /// First fit: the free page with the smallest number.
    fn take_lowest(&mut self) -> Option<u32> {
        let word = self.lowest + self.words.get(self.lowest..)?.iter().position(|&word| word != 0)?;
        self.lowest = word;
        let bit = self.words[word].trailing_zeros();
        self.words[word] &= self.words[word] - 1;
        Some(word as u32 * 64 + bit)
    }

    /// Grows to `pages` pages; the new ones are free.
    fn grow(&mut self, pages: usize) {
        self.words.resize(pages.div_ceil(64), 0);
        for page in self.pages..pages {
            self.put(page as u32);
        }
        self.pages = pages;
    }

    fn truncate(&mut self, pages: usize) {
        self.words.truncate(pages.div_ceil(64));
        if let Some(last) = self.words.last_mut()
            && !pages.is_multiple_of(64)
        {
            *last &= (1 << (pages % 64)) - 1;
        }
        self.pages = pages;
    }

    fn longest_run(&self, pages: usize) -> usize {
        let (mut run, mut longest) = (0, 0);
        for page in 0..pages {
            run = if self.words[page / 64] >> (page % 64) & 1 == 1 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    }
}
