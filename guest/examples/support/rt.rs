//! What the generated bindings ask for at run time.
#![allow(unsafe_code, reason = "memory is handed over between the host and the policy")]

use std::alloc::{Layout, alloc, handle_alloc_error};
use std::ptr::null_mut;

/// Called at the start of each exported function.
#[cfg(target_family = "wasm")]
pub fn run_ctors_once() {
    static FIRST: std::sync::Once = std::sync::Once::new();
    unsafe extern "C" {
        /// The linker makes it of what is to be run before anything else. Were it not called here, the linker would have
        /// every exported function call it, each time.
        fn __wasm_call_ctors();
    }
    FIRST.call_once(|| {
        unsafe { __wasm_call_ctors() };
        super::panic_text::keep();
    });
}

/// Gets the host memory for what it hands over.
#[cfg(target_family = "wasm")]
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    if size == 0 {
        return align as *mut u8;
    }
    unsafe {
        let layout = Layout::from_size_align_unchecked(if old_size == 0 { size } else { old_size }, align);
        let new = if old_size == 0 { alloc(layout) } else { std::alloc::realloc(old, layout, size) };
        if new.is_null() { handle_alloc_error(layout) } else { new }
    }
}

/// Memory of a list in the verdict. The host has it freed when it has read the verdict.
pub struct Cleanup;

impl Cleanup {
    /// Memory of this layout; null where it has no size.
    pub fn new(layout: Layout) -> (*mut u8, Option<Cleanup>) {
        if layout.size() == 0 {
            return (null_mut(), None);
        }
        let new = unsafe { alloc(layout) };
        if new.is_null() { handle_alloc_error(layout) } else { (new, Some(Cleanup)) }
    }

    /// Leaves the memory to the host.
    pub fn forget(self) {}
}
