//! What is wrong with a line, as far as its transport knows: the client library is told nothing that it could print.

use super::fault::LinkFault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Why a line could not be opened, and whether it is of use for another request.
#[derive(Default)]
pub(crate) struct LinkTrouble {
    fault: Mutex<Option<LinkFault>>,
    stale: AtomicBool,
}

impl LinkTrouble {
    /// Keeps the fault for whoever opens the line.
    pub(super) fn keep(&self, fault: LinkFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Why the line could not be opened, if that is known.
    pub(super) fn take(&self) -> Option<LinkFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The next exchange opens another line; those on this one end by themselves.
    pub(super) fn retire(&self) {
        self.stale.store(true, Ordering::Release);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }
}
