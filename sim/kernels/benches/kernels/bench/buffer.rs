//! Tensors to measure on: aligned to a cache line, in huge pages where they are large.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line.
pub(crate) const LINE: usize = 64;
/// A huge page of x86-64 and of most ARM systems.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// A number type that a buffer can store: all bits zero is a valid value of it.
///
/// # Safety
/// All bits zero is a valid value of the type, and dropping it does nothing.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: all bits zero is 0.0; a number is dropped without effect.
unsafe impl Plain for f32 {}
// SAFETY: all bits zero is 0; a number is dropped without effect.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}

/// A slice that owns its memory, aligned to 64 bytes. A slice of at least two huge pages is aligned to a huge page, and
/// the operating system is advised to use huge pages for it.
pub(crate) struct Buffer<T: Plain> {
    start: NonNull<T>,
    elements: usize,
    layout: Layout,
}

// SAFETY: a buffer owns its memory as a `Vec` does, and a `Plain` number may go to any thread.
unsafe impl<T: Plain + Send> Send for Buffer<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain + Sync> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    /// A buffer of `elements` zeros. Running out of memory ends the process, as it does for a `Vec`.
    pub(crate) fn zeroed(elements: usize) -> Self {
        let bytes = elements * size_of::<T>();
        let align = if bytes >= 2 * HUGE_PAGE { HUGE_PAGE } else { LINE };
        // At least one line, because the allocator does not accept size zero. A size or alignment that overflows the
        // address space belongs to no tensor.
        let Ok(layout) = Layout::from_size_align(bytes.max(LINE), align) else {
            handle_alloc_error(Layout::new::<T>());
        };
        // SAFETY: the layout has a size of at least a line.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast::<T>()) else { handle_alloc_error(layout) };
        if align == HUGE_PAGE {
            advise_huge_pages(start.as_ptr().cast(), bytes);
        }
        let mut buffer = Self { start, elements, layout };
        if let Some(&first) = buffer.first() {
            // The system maps a page at the first write; that cost must not be measured.
            buffer.fill(first);
        }
        buffer
    }
}

#[cfg(target_os = "linux")]
fn advise_huge_pages(start: *mut libc::c_void, bytes: usize) {
    // SAFETY: the range was just allocated here; the advice changes no contents. Its failure only costs speed.
    let _ = unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_: *mut libc::c_void, _: usize) {}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory has room for this many elements, all of them written by `alloc_zeroed`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.elements) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.elements) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nothing refers to it any more.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}

impl<T: Plain> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("elements", &self.elements).field("align", &self.layout.align()).finish()
    }
}
